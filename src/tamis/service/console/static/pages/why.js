// Why: which subscriptions an event matches, and why another one does not, predicate by predicate.
import { get, path, post } from "../api.js";
import { el, field, fill, heading, sheet } from "../dom.js";
import { condition } from "../language.js";
import { clock, count, json } from "../words.js";

const SHOWN = 50;

export async function show(place, context, sequence, subscription) {
  const area = el("textarea", { rows: "6", spellcheck: "false", placeholder: '{"price": 4, "title": "old chair"}' });
  const wrong = el("p", { class: "bad", role: "alert" });
  const recent = el("ol", { class: "list feed short", "aria-label": "Latest events", tabindex: "0" });
  const matches = sheet("Who matches", el("p", { class: "empty" }, "Give an event first."));
  const other = el("input", { inputmode: context.me.ids === "text" ? null : "numeric", value: subscription ?? "" });
  const verdict = el("div", { class: "stack tight", role: "status" });

  function event() {
    wrong.textContent = "";
    try {
      const found = JSON.parse(area.value);
      if (found && typeof found === "object" && !Array.isArray(found)) return found;
      wrong.textContent = "An event is a JSON object.";
    } catch (why) {
      wrong.textContent = `This is not JSON: ${why.message}`;
    }
    return null;
  }

  async function match(submitted) {
    submitted?.preventDefault();
    const given = event();
    fill(verdict);
    if (!given) return;
    try {
      const found = await post("/v1/match", { event: given });
      fill(matches, el("h2", {}, found.count === 1 ? "1 subscription matches" : `${count(found.count)} subscriptions match`),
        el("ul", { class: "list feed", tabindex: "0", "aria-label": "Subscriptions that match" }, found.subscriptions.slice(0, SHOWN).map((id) => el("li", { class: "row spread" },
          el("a", { href: `/console/subscriptions/${encodeURIComponent(id)}` }, `subscription ${id}`),
          el("button", { class: "small", onclick: () => explain(id) }, "Why?")))),
        found.count > SHOWN ? el("p", { class: "quiet fine" }, `These are the first ${SHOWN}.`) : null);
    } catch (why) {
      fill(matches, el("h2", {}, "Who matches"), el("p", { class: "bad" }, why.message.split("\n")[0]));
    }
  }

  async function explain(id) {
    const given = event();
    if (!given) return;
    other.value = id;
    try {
      const found = await get(`/v1/subscriptions/${encodeURIComponent(id)}`);
      const answer = await post("/v1/explain", { condition: found.condition, language: found.language, event: given });
      fill(verdict,
        el("p", { class: answer.matches ? "note" : "note wrong" }, answer.matches
          ? `Subscription ${id} matches.` : `Subscription ${id} does not match.`),
        condition(found.condition), branches(answer.explanation));
    } catch (why) {
      fill(verdict, el("p", { class: "bad" }, why.message.split("\n")[0]));
    }
  }

  async function pick(number) {
    const found = await get(`/v1/events/${number}`).catch((why) => { wrong.textContent = why.message; });
    if (!found) return;
    area.value = JSON.stringify(found, null, 2);
    area.rows = Math.min(16, area.value.split("\n").length + 1);
    await match();
  }

  fill(place, heading("Why"),
    el("div", { class: "two" },
      el("form", { class: "sheet", onsubmit: match }, el("h2", {}, "An event"),
        field("Event, as JSON", area), wrong,
        el("div", {}, el("button", { class: "main" }, "Who matches?"))),
      sheet("Or one of the latest", context.may("publisher") ? recent
        : el("p", { class: "empty" }, "Only keys with the role publisher may read events."))),
    el("div", { class: "two" }, matches,
      el("section", { class: "sheet" }, el("h2", {}, "Why, or why not"),
        el("form", { class: "row end", onsubmit: (sent) => { sent.preventDefault(); if (other.value.trim()) explain(other.value.trim()); } },
          grow(field("Id of a subscription", other)), el("button", {}, "Explain")), verdict)));
  if (context.may("publisher")) {
    const { events } = await get(path("/console/api/events", {}));
    fill(recent, events.length ? events.map((each) => el("li", {}, el("div", { class: "head" },
      el("span", {}, `${count(each.sequence)} · ${clock(each.time)}`),
      el("button", { class: "small", onclick: () => pick(each.sequence), "aria-label": `Take event ${each.sequence}` }, "Take")), json(each.event)))
      : el("li", { class: "empty" }, "Nothing was published yet."));
    if (sequence) await pick(sequence);
    if (sequence && subscription) await explain(subscription);
  }
}

function grow(made) {
  made.classList.add("grow");
  return made;
}

/** The lines of an explanation: branches, and in each the predicates with their verdicts. */
export function branches(text) {
  const found = [];
  for (const line of text.split("\n").slice(1)) {
    const verdict = /^ {2}(yes|no |\? {2}) {2}(.*)$/s.exec(line);
    if (!verdict) {
      found.push(el("p", { class: "label" }, line.trim()), el("ul", { class: "verdicts" }));
      continue;
    }
    if (found.at(-1)?.tagName !== "UL") found.push(el("ul", { class: "verdicts" }));
    const [mark, name] = { y: ["✓", "holds"], n: ["✗", "fails"] }[verdict[1][0]] ?? ["?", "given up"];
    const cut = cutAt(verdict[2]);
    found.at(-1).append(el("li", {},
      el("span", { class: mark === "✓" ? "good" : "bad", role: "img", "aria-label": name }, mark),
      el("span", {}, cut ? [condition(verdict[2].slice(0, cut)), el("span", { class: "why" }, verdict[2].slice(cut))] : verdict[2])));
  }
  return found;
}

/** Where the reason begins: at the first colon with a space that is not within quotes. */
function cutAt(text) {
  let quoted = false;
  for (let at = 0; at < text.length; at += 1) {
    if (text[at] === '"' && text[at - 1] !== "\\") quoted = !quoted;
    else if (!quoted && text[at] === ":" && text[at + 1] === " ") return at;
  }
  return 0;
}
