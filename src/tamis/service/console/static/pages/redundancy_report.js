// Redundancy: which live subscriptions say nothing that others do not say. The service makes the
// report beside its matching, one at a time; whoever opens the page sees the one that is made, or
// the last one.
import { get, post, remove } from "../api.js";
import { announce, el, figures, fill, table } from "../dom.js";
import { condition } from "../language.js";
import { count, many, moment } from "../words.js";

const ADDRESS = "/console/api/redundancy";
const PAUSE = 700; // milliseconds between two looks
const FEW = 10; // entries: such a list is open

export function redundancyReport() {
  const start = el("button", { onclick: () => act(() => post(ADDRESS)) }, "Find redundant subscriptions");
  const stop = el("button", { hidden: true, onclick: () => act(() => remove(ADDRESS)) }, "Stop");
  const step = el("span", { id: "redundancy-step" });
  const bar = el("progress", { "aria-labelledby": "redundancy-step" });
  const progress = el("div", { class: "stack tight", hidden: true }, step, bar);
  const wrong = el("p", { class: "bad", role: "alert" });
  const found = el("div", { class: "stack" });
  let timer = 0, closed = false, running = false;

  async function act(work) {
    wrong.textContent = "";
    try {
      await work();
    } catch (why) {
      wrong.textContent = why.message;
      return;
    }
    await look();
  }

  async function look() {
    clearTimeout(timer);
    const answer = await get(ADDRESS).catch((why) => ({ error: why.message }));
    if (closed) return;
    const was = running;
    running = Boolean(answer.running);
    start.hidden = running;
    progress.hidden = stop.hidden = !running;
    if (running) {
      step.textContent = answer.total ? `${answer.step}: ${count(answer.done)} of ${count(answer.total)}` : answer.step;
      bar.max = Math.max(1, answer.total);
      bar.value = answer.done;
      timer = setTimeout(look, PAUSE);
      return;
    }
    if (answer.error) wrong.textContent = answer.error;
    if (!answer.report) return;
    start.textContent = "Find them again";
    fill(found, reportParts(answer));
    if (was) announce(summary(answer.report));
  }

  return {
    place: el("section", { class: "sheet" },
      el("div", { class: "row spread" }, el("h2", {}, "Redundant subscriptions"), el("div", { class: "row" }, start, stop)),
      el("p", { class: "quiet fine" }, "Subscriptions whose matches others have too. This takes memory and "
        + "seconds to minutes, in a process that lets matching come first."),
      progress, wrong, found),
    open: look,
    close() { closed = true; clearTimeout(timer); },
  };
}

const summary = (report) => (report.redundant
  ? `${count(report.redundant)} of ${many(report.subscriptions, "subscription")} could go.`
  : `None of ${many(report.subscriptions, "subscription")} is known to be redundant.`);

function reportParts({ report, began }) {
  return [
    el("p", {}, summary(report), el("span", { class: "quiet" }, ` As of ${moment(began)}.`)),
    figures([["Copies", count(report.copies)], ["Covered by another", count(report.covered.many)],
      ["Never true", count(report.never_true.many)], ["Always true", count(report.always_true.many)],
      ["Not decided", count(report.undecided.reduce((sum, each) => sum + each.many, 0))]]),
    kind("Groups of copies", "They match the same events, also if they are written in another way.", report.duplicates,
      [["Subscriptions"], ["Condition of the first"]], (group) => [
        [group.entries.map((each, at) => [at ? " = " : null, link(each)]),
          group.many > group.entries.length ? ` and ${count(group.many - group.entries.length)} more` : null],
        text(group.entries[0])]),
    kind("Covered by another", "Every event that one matches, the other matches too.", report.covered,
      [["Subscription"], ["Condition"], ["Covered by"], ["Condition"]],
      ([each, by]) => [link(each), text(each), link(by), text(by)]),
    ids("Never true", "No event of the schema matches.", report.never_true),
    ids("Always true", "Every event matches.", report.always_true),
    report.undecided.map((each) => ids(`Not decided: ${each.reason}`,
      "There may be more redundancy than is listed that involves these.", each)),
  ];
}

/** A list that can be opened; its title counts also what is not shown. */
function kind(title, about, { many: all, entries }, columns, row) {
  return all ? el("details", { open: entries.length <= FEW }, el("summary", {}, `${title} (${count(all)})`),
    el("p", { class: "quiet fine" }, about, all > entries.length ? ` These are the first ${count(entries.length)}.` : null),
    table(title, columns, entries.map(row))) : null;
}

const ids = (title, about, found) => kind(title, about, found, [["Subscription"], ["Condition"]],
  (each) => [link(each), text(each)]);

const link = (each) => el("a", { href: `/console/subscriptions/${encodeURIComponent(each.id)}` }, String(each.id));
const text = (each) => condition(each.condition, true);
