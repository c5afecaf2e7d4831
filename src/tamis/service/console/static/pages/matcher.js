// The matcher: its plan as a picture, what it costs, the operators that it calls, and which
// subscriptions say nothing that others do not say.
import { get } from "../api.js";
import { el, facts, figures, fill, heading, meter, sheet, svg, table } from "../dom.js";
import { bytes, count, figure, milliseconds } from "../words.js";
import { redundancyReport } from "./redundancy_report.js";
import { placeText } from "./subscription_one.js";

export async function show(place) {
  const plan = el("div", { class: "stack" }), operators = sheet("Operators");
  const redundancy = redundancyReport();
  fill(place, heading("Matcher", el("button", { onclick: () => load() }, "Read again")), plan, operators,
    redundancy.place);
  async function load() {
    const [found, calls] = await Promise.all([
      get("/console/api/matcher").catch((why) => why), get("/v1/operators").catch((why) => why)]);
    if (found instanceof Error) fill(plan, el("p", { class: "note" }, found.message));
    else showPlan(plan, found);
    showOperators(operators, calls);
  }
  await Promise.all([load(), redundancy.open()]);
  return redundancy.close;
}

function showPlan(place, plan) {
  const all = Math.max(1, plan.clauses), ns = Math.max(1e-9, plan.ns);
  const routes = [...plan.routes].sort((a, b) => b.clauses - a.clauses);
  const name = (each) => (each.attributes.length ? placeText(each)
    : each.columns.length ? `${placeText(each)} of ${each.columns.slice(0, 4).map((column) => column.attribute).join(", ")}${each.columns.length > 4 ? " …" : ""}`
      : `${placeText(each)}${each.together > 1 ? ` ${count(each.together)} more keys` : ""}`);
  fill(place,
    figures([["Branches of conditions", count(plan.clauses)], ["Expected an event", el("dd", {}, `${figure(plan.ns / 1000)} µs`)],
      ["Branches met an event", figure(plan.met)], ["Expected matches", figure(plan.matches)],
      ["Memory", bytes(plan.bytes)]]),
    sheet("Where branches are kept",
      el("p", { class: "quiet fine" }, `Planned with ${count(plan.events)} events. Above, the branches; below, the time that they cost.`),
      picture(routes, all, ns),
      table("Places", [["Place"], ["Branches", true], ["Share of branches and of time"], ["Met", true], ["Cost", true], ["Memory", true]],
        routes.map((each) => [name(each), count(each.clauses),
          el("div", { class: "stack bars" }, meter(each.clauses / all), meter(each.ns / ns, true)),
          figure(each.met), `${figure(each.ns)} ns`, bytes(each.bytes)]))),
    plan.cuts.length ? sheet("How values are cut into cells",
      table("Cuts", [["Attribute"], ["Bound", true], ["Cells", true], ["Intervals", true], ["Exact", true]],
        plan.cuts.map((each) => [each.attribute ?? `${each.together} others`, `${figure(each.bound * 100)} %`,
          count(each.cells), count(each.intervals), `${figure(each.exact * 100)} %`]))) : null,
    sheet("What a step costs here", facts(Object.entries(plan.costs).map(([step, cost]) =>
      [step.replaceAll("_", " "), step === "dense_from" ? `${figure(cost * 100)} % of events` : `${figure(cost)} ns`]))));
}

/** Two bars: how branches, and how time, are shared out among places. */
function picture(routes, all, ns) {
  const drawn = svg("svg", { viewBox: "0 0 1000 92", role: "img", class: "plan",
    "aria-label": `Plan: ${routes.map((each) => `${placeText(each)}: ${count(each.clauses)} branches`).join("; ")}` });
  for (const [of, whole, top] of [["clauses", all, 0], ["ns", ns, 52]]) {
    let left = 0;
    routes.forEach((each, at) => {
      const wide = each[of] / whole * 1000;
      drawn.append(svg("rect", { x: left, y: top, width: Math.max(0, wide - 2), height: 40, class: `shade-${at % 5}` }));
      if (wide > 120) {
        const text = svg("text", { x: left + 10, y: top + 25, class: `on-${at % 5}` });
        text.textContent = placeText(each).slice(0, Math.floor(wide / 9));
        drawn.append(text);
      }
      left += wide;
    });
  }
  return drawn;
}

function showOperators(place, found) {
  const title = el("h2", {}, "Operators");
  if (found instanceof Error) {
    fill(place, title, el("p", { class: "empty" }, found.message));
    return;
  }
  fill(place, title, found.operators.length
    ? table("Operators", [["Operator"], ["Calls", true], ["A call", true], ["Remembered", true], ["Faults", true], ["State"]],
      found.operators.map((each) => [el("span", { class: "mono" }, `${each.name}(${each.reads.join(", ")})`), count(each.calls),
        each.calls ? milliseconds(each.seconds / each.calls * 1000) : "–", count(each.remembered),
        count(Object.values(each.faults).reduce((sum, one) => sum + one, 0)),
        each.set_aside ? `set aside: ${each.last}` : each.last ? `works; last fault: ${each.last}` : "works"]))
    : el("p", { class: "empty" }, "No operators are enabled: ", el("code", {}, "tamis serve --operators …")),
  found.left_out.length ? el("div", { class: "note wrong stack tight" }, found.left_out.map((each) =>
    el("p", {}, `${count(each.subscriptions)} not matched: ${each.reason}`))) : null);
}
