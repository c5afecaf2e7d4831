// One subscription: its condition, its lease, what it matched, and where the matcher keeps it.
import { get, path, post, remove } from "../api.js";
import { confirm, el, facts, fill, heading, sheet } from "../dom.js";
import { timeChart } from "../charts.js";
import { condition } from "../language.js";
import { count, figure, json, leaseEnd, moment } from "../words.js";

// Rows of the log that are looked through for recent matches: more, as long as few are found.
const BACK = [2000, 20_000, 100_000];
const ENOUGH = 100;
const PATIENCE = 300; // milliseconds: further back takes a multiple of what the last step took
const BARS = 60;
const LISTED = 20; // matches with their events
const TEXT = 2000; // characters of an event that are shown

export async function one(place, context, id) {
  const address = `/v1/subscriptions/${encodeURIComponent(id)}`;
  let [found, { matched }] = await Promise.all([get(address), get("/console/api/position")]);
  const told = el("p", { role: "status" });
  const lease = el("span"), matches = sheet("Recent matches", el("p", { class: "empty" }, "Reading …"));
  const kept = sheet("In the matcher", el("p", { class: "empty" }, "Reading …"));
  const seconds = el("select", { "aria-label": "New lease" },
    [["3600", "an hour"], ["86400", "a day"], ["604800", "a week"], ["", "no end"]]
      .map(([value, text]) => el("option", { value, selected: value === "86400" }, text)));

  async function act(work, done) {
    try {
      await work();
      fill(told, el("span", { class: "good" }, done));
    } catch (why) {
      fill(told, el("span", { class: "bad" }, why.message));
    }
  }
  const renew = () => act(async () => {
    found = await post(`${address}/renew`, { lease: seconds.value ? Number(seconds.value) : null });
    showLease();
  }, "The lease was renewed.");
  const cancel = async () => {
    if (!await confirm(`End subscription ${id}? Its notifications can still be read.`, "End it")) return;
    await act(() => remove(address), "It has ended.");
    context.go("/console/subscriptions");
  };
  const rotate = () => act(async () => {
    const { secret } = await post(`${address}/sink/rotate`);
    place.querySelector(".secret").textContent = `New secret, shown only here: ${secret}`;
  }, "There is a new secret. For a day, messages are signed with both.");
  const showLease = () => fill(lease, leaseEnd(found.until), found.until
    ? el("span", { class: "quiet" }, ` (${moment(found.until)})`) : null);

  showLease();
  const sink = found.sink;
  fill(place,
    heading(`Subscription ${found.id}${found.name ? `: ${found.name}` : ""}`,
      el("a", { class: "button", href: `/console/live/${encodeURIComponent(id)}` }, "Follow"),
      el("a", { class: "button", href: `/console/subscriptions/${encodeURIComponent(id)}/edit` }, "Edit"),
      el("button", { class: "bad", onclick: cancel }, "End")),
    sheet("Condition", condition(found.condition)),
    el("div", { class: "two" },
      sheet("Lease and delivery",
        facts([["Lease", lease], ["Owner", found.owner ?? "nobody: whoever has the ticket"],
          ["Language", found.language],
          ["Webhook", sink?.url], ["Kafka topic", sink?.kafka?.topic],
          ["Shows of the event", sink ? String(sink.body) : "the whole event"],
          ["Metadata", found.metadata ? json(JSON.stringify(found.metadata)) : null]]),
        el("div", { class: "row" }, el("button", { onclick: renew }, "Renew for"), seconds,
          sink?.url ? el("button", { onclick: rotate }, "New secret") : null),
        told, el("p", { class: "secret mono" })),
      kept),
    matches);
  const open = { ended: false, close() {} }; // the chart
  showPlace(kept, id);
  showMatches(matches, address, matched - 1, open).catch((why) => fill(matches, el("h2", {}, "Recent matches"),
    el("p", { class: "bad" }, why.message)));
  return () => { open.ended = true; open.close(); };
}

/** Paint what was found as soon as it is; look further back while that is quick. */
async function showMatches(place, address, last, open) {
  const read = (after, more) => get(path(`${address}/notifications`, { after, most: 10_000, body: "none", ...more }));
  for (const back of BACK) {
    const from = Math.max(-1, last - back), began = performance.now();
    const { notifications: found } = await read(from).catch((why) => (why.body?.first === undefined ? Promise.reject(why)
      : read(why.body.first - 1)));
    const took = performance.now() - began;
    const latest = found.length ? await read(found.slice(-LISTED)[0].sequence - 1, { most: LISTED, body: "event" }) : null;
    if (open.ended) return;
    paintMatches(place, open, found, latest?.notifications ?? [], Math.min(back, last + 1));
    if (found.length >= ENOUGH || from < 0 || took > PATIENCE) return;
  }
}

function paintMatches(place, open, found, latest, rows) {
  open.close();
  fill(place, el("h2", {}, "Recent matches"), el("p", { class: "quiet" }, found.length
    ? `${count(found.length)}${found.length >= 10_000 ? " or more" : ""} among the last ${count(rows)} rows of the log`
    : `It has matched nothing among the last ${count(rows)} rows of the log.`));
  const times = found.filter((each) => each.time).map((each) => Date.parse(each.time) / 1000);
  if (times.length) {
    const chart = el("div");
    place.append(chart);
    const low = times[0], step = Math.max(1, (times.at(-1) - low) / BARS);
    const bars = new Array(Math.floor((times.at(-1) - low) / step) + 1).fill(0);
    times.forEach((each) => { bars[Math.floor((each - low) / step)] += 1; });
    const made = timeChart(chart, "Matches over time", ["matches"], { bars: true, height: 140 });
    made.set([bars.map((_, at) => low + (at + 0.5) * step), bars]);
    open.close = made.close;
  }
  if (latest.length) {
    place.append(el("ol", { class: "list feed", "aria-label": "The latest matches", tabindex: "0" },
      latest.reverse().map((each) => el("li", {},
        el("div", { class: "head" }, el("span", {}, `event ${count(each.sequence)} · ${moment(each.time)}`),
          el("a", { href: `/console/why/${each.sequence}`, "aria-label": `Why: event ${each.sequence}` }, "Why?")),
        each.event ? json(JSON.stringify(each.event).slice(0, TEXT)) : null))));
  }
}

const SORTS = { value: "under one value of", cells: "under a range of", any: "under any value of",
  combination: "under values together of", sparse: "in a sparse bitmap", dense: "in a dense bitmap" };
export const placeText = (each) => `${SORTS[each.sort] ?? each.sort} ${each.attributes.join(" and ")}`.trim();

async function showPlace(place, id) {
  const title = el("h2", {}, "In the matcher");
  try {
    const plan = await get(`/console/api/subscriptions/${encodeURIComponent(id)}/plan`);
    if (plan.left_out) {
      fill(place, title, el("p", { class: "note wrong" }, `It is not matched: ${plan.left_out}`));
      return;
    }
    fill(place, title, plan.choices.length ? plan.choices.map((each, at) => el("div", { class: "stack tight" },
      plan.choices.length > 1 ? el("h3", { class: "label" }, `Branch ${at + 1}`) : null,
      facts([["Kept", placeText(each.taken)],
        ["Cost", `${figure(each.taken.ns)} ns an event, expected`],
        ["Likely", `${figure(each.likely * 100)} % of events`]]),
      each.others.length ? el("details", {}, el("summary", {}, "Other places, and what they would cost"),
        el("ul", { class: "list" }, each.others.map((other) => el("li", { class: "row spread" },
          placeText(other), el("span", { class: "quiet" }, `${figure(other.ns)} ns`))))) : null))
      : el("p", { class: "empty" }, "No branch of it can ever hold, so the matcher keeps none."));
  } catch (why) {
    fill(place, title, el("p", { class: "empty" }, why.message));
  }
}
