// Charts that a person reads at a glance: one accent line, perhaps a dashed second one.
/* global uPlot */

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

const clockText = (seconds) => new Date(seconds * 1000).toLocaleTimeString("en-GB", { hour12: false });
const padded = (low, high) => { // half a bar at each end
  const space = Math.max(1, (high - low) / 40);
  return [low - space, high + space];
};

/** A chart over time in `place`. `lines` are names; returns `{set(data), close()}`. */
export function timeChart(place, label, lines, { bars = false, unit = "", height = 140 } = {}) {
  let chart = null, data = [[], ...lines.map(() => [])];
  place.classList.add("chart");
  place.setAttribute("role", "img");
  place.setAttribute("aria-label", label);

  function make() {
    chart?.destroy();
    const axis = { stroke: colour("--quiet"), font: "12px system-ui", ticks: { show: false },
      grid: { stroke: colour("--line"), width: 1 } };
    chart = new uPlot({
      width: Math.max(200, place.clientWidth), height,
      cursor: { show: false }, legend: { show: false },
      scales: { x: { time: true, range: (_, low, high) => (bars ? padded(low, high) : [low, high]) }, y: { range: (_, low, high) => [0, high > 0 ? high * 1.15 : 1] } },
      axes: [
        { ...axis, grid: { show: false }, space: 80, size: 28, values: (_, ticks) => ticks.map(clockText) },
        { ...axis, size: 52, space: 40, values: (_, ticks) => ticks.map((each) =>
          `${each >= 1000 ? `${each / 1000}k` : Math.round(each * 1000) / 1000}${unit}`) },
      ],
      series: [{}, ...lines.map((name, at) => ({
        label: name, stroke: colour(at ? "--quiet" : "--accent"), width: 2,
        dash: at ? [4, 4] : undefined, points: { show: false },
        fill: at ? undefined : `${colour("--accent")}22`,
        paths: bars ? uPlot.paths.bars({ size: [0.8, 40] }) : undefined,
      }))],
    }, data, place);
  }

  const seen = new ResizeObserver(() => chart?.setSize({ width: Math.max(200, place.clientWidth), height }));
  make();
  seen.observe(place);
  window.addEventListener("tamis-theme", make);
  const media = matchMedia("(prefers-color-scheme: dark)");
  media.addEventListener("change", make);
  return {
    set(given) { data = given; chart.setData(data); },
    close() {
      seen.disconnect();
      window.removeEventListener("tamis-theme", make);
      media.removeEventListener("change", make);
      chart.destroy();
    },
  };
}
