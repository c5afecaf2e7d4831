"""The look of the report: light and dark, wide and narrow."""

from __future__ import annotations

CSS = """
:root { color-scheme: light dark; --text: #1b1f24; --back: #ffffff; --soft: #f3f4f6;
  --line: #d5d9df; --faint: #5b6470; --link: #0b5cad; }
@media (prefers-color-scheme: dark) { :root { --text: #e3e6ea; --back: #14171b; --soft: #20252b;
  --line: #39414b; --faint: #9aa4b0; --link: #7ab7ff; } }
* { box-sizing: border-box; }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--text); background: var(--back);
  max-width: 72rem; margin: 0 auto; padding: 1rem; overflow-wrap: break-word; }
h1 { font-size: 1.6rem; line-height: 1.25; }
h2 { font-size: 1.35rem; margin-top: 2.5rem; border-bottom: 1px solid var(--line); }
h3 { font-size: 1.1rem; margin-top: 2rem; }
h4 { font-size: 0.95rem; margin-bottom: 0.2rem; }
p { max-width: 46rem; }
a { color: var(--link); }
code { background: var(--soft); padding: 0.1em 0.3em; border-radius: 3px; font-size: 0.9em; }
figure { margin: 1rem 0; background: #ffffff; border: 1px solid var(--line); border-radius: 6px;
  padding: 0.5rem; overflow-x: auto; }
img { display: block; max-width: 100%; height: auto; margin: 0 auto; }
.source, .lacking { color: var(--faint); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 0.9rem; }
th, td { text-align: left; vertical-align: top; padding: 0.4rem 0.7rem 0.4rem 0;
  border-bottom: 1px solid var(--line); }
td:first-child { white-space: nowrap; }
.numbers td { white-space: nowrap; font-variant-numeric: tabular-nums; }
.chip { display: inline-block; padding: 0.05em 0.55em; border-radius: 1em; font-size: 0.85rem;
  white-space: nowrap; border: 1px solid; }
.confirmed { color: #10632f; background: #def5e4; }
.not-confirmed { color: #7a4a00; background: #fdf0d0; }
.contrary { color: #97180f; background: #fde3e0; }
.cannot-be-tested-here, .not-measured { color: #40474f; background: #e6e9ed; }
summary { cursor: pointer; color: var(--link); }
@media (max-width: 44rem) {
  img { max-width: none; width: 50rem; }
  table:not(.numbers) thead { display: none; }
  table:not(.numbers) tr { display: block; padding: 0.5rem 0;
    border-bottom: 1px solid var(--line); }
  table:not(.numbers) td { display: block; border: 0; padding: 0.15rem 0; white-space: normal; }
  table:not(.numbers) td::before { content: attr(data-head) ": "; color: var(--faint); }
}
@media print { details { display: none; } }
"""
