// Events and notifications as they come. What is kept here has a bound, whatever the load is.
import { follow, path } from "../api.js";
import { el, figures, field, fill, heading, later, sheet } from "../dom.js";
import { timeChart } from "../charts.js";
import { clock, count, figure, json, milliseconds } from "../words.js";

const POINTS = 600; // five minutes
const ITEMS = 60; // in each list

export async function show(place, context, subscription = "") {
  const shown = Object.fromEntries(["rate", "matches", "latency", "backlog", "live"]
    .map((name) => [name, el("dd", {}, "–")]));
  const rate = el("div"), notified = el("div"), latency = el("div");
  const events = el("ol", { class: "list feed", "aria-label": "Latest events", tabindex: "0" });
  const found = el("ol", { class: "list feed", "aria-label": "Latest notifications", tabindex: "0" });
  const filter = el("input", { type: "search", placeholder: "text of an event" });
  const one = el("input", { inputmode: context.me.ids === "text" ? null : "numeric",
    placeholder: "all", value: subscription });
  const state = el("span", { class: "tag", role: "status" }, "connecting");
  const pause = el("button", { "aria-pressed": "false" }, "Pause");
  const series = { time: [], events: [], matches: [], p50: [], p99: [] };
  const last = { events: [], notifications: [] };
  const made = new WeakMap(); // the elements of items
  let stop = new AbortController(), paused = false;

  run(); // the service answers while the page is made
  fill(place,
    heading("Live", state, pause),
    figures([["Events a second", shown.rate], ["Matches an event", shown.matches],
      ["Latency, p50", shown.latency], ["Backlog", shown.backlog],
      ["Live subscriptions", shown.live]]),
    el("div", { class: "three" },
      sheet(["Events ", el("small", {}, "a second")], rate),
      sheet(["Notifications ", el("small", {}, "a second")], notified),
      sheet(["Latency ", el("small", {}, "p50; dashed: p99")], latency)),
    el("div", { class: "two" },
      field("Show only events with", filter), field("Follow one subscription", one)),
    el("div", { class: "two" },
      sheet("Events", context.may("publisher") ? events
        : el("p", { class: "empty" }, "Only keys with the role publisher may read events.")),
      sheet("Notifications", found)));
  const charts = [
    timeChart(rate, "Events a second over the last five minutes", ["events"]),
    timeChart(notified, "Notifications a second over the last five minutes", ["notifications"]),
    timeChart(latency, "Latency in milliseconds over the last five minutes", ["p50", "p99"], { unit: " ms" }),
  ];

  function take(message) {
    const seconds = message.seconds;
    if (seconds > 0.2) push(message.time, message.events / seconds, message.matches / seconds, message.latency);
    const recent = (name) => series[name].slice(-10).reduce((sum, each) => sum + each, 0) / Math.max(1, Math.min(10, series[name].length));
    const [rates, matches] = [recent("events"), recent("matches")];
    shown.rate.textContent = figure(rates);
    shown.matches.textContent = rates ? figure(matches / rates) : "–";
    fill(shown.latency, milliseconds(message.latency.p50), " ",
      el("small", {}, `p99 ${milliseconds(message.latency.p99)}`));
    shown.backlog.textContent = count(message.backlog);
    shown.live.textContent = count(message.live);
    last.events = [...newer(message.sample, last.events), ...last.events].slice(0, ITEMS);
    last.notifications = [...newer(message.notifications.reverse(), last.notifications),
      ...last.notifications].slice(0, ITEMS);
    if (document.hidden) return;
    charts[0].set([series.time, series.events]);
    charts[1].set([series.time, series.matches]);
    charts[2].set([series.time, series.p50, series.p99]);
    if (message.sample.length) list(events, last.events, event);
    if (message.notifications.length) list(found, last.notifications, notification);
  }

  function push(time, rateNow, matches, now) {
    const values = { time, events: rateNow, matches, p50: now.p50, p99: now.p99 };
    for (const [name, value] of Object.entries(values)) {
      series[name].push(value);
      if (series[name].length > POINTS) series[name].shift();
    }
  }

  // Only what is new is made and put in: elements that stay keep the focus and the place of scrolling.
  function list(place_, items, make) {
    const wanted = filter.value.toLowerCase();
    const kept = items.filter((each) => !wanted || (each.event ?? "").toLowerCase().includes(wanted));
    let at = place_.firstChild;
    for (const each of kept) {
      if (!made.has(each)) made.set(each, make(each));
      if (at === made.get(each)) at = at.nextSibling;
      else place_.insertBefore(made.get(each), at);
    }
    while (at) {
      const gone = at;
      at = at.nextSibling;
      gone.remove();
    }
    if (!kept.length) fill(place_, el("li", { class: "empty" }, wanted ? "None of the latest has this text." : "Nothing yet."));
  }

  function both() {
    list(events, last.events, event);
    list(found, last.notifications, notification);
  }

  async function run() {
    stop = new AbortController();
    const where = path("/console/api/live", { subscription: one.value.trim() });
    try {
      await follow(where, take, (on) => { state.textContent = on ? "live" : "reconnecting"; }, stop.signal);
    } catch (why) {
      if (why.status === 401) return;
      state.textContent = "stopped";
      fill(found, el("li", { class: "note wrong" }, why.message));
    }
  }

  pause.addEventListener("click", () => {
    paused = !paused;
    pause.setAttribute("aria-pressed", String(paused));
    pause.textContent = paused ? "Go on" : "Pause";
    stop.abort();
    state.textContent = paused ? "paused" : "connecting";
    if (!paused) run();
  });
  filter.addEventListener("input", both);
  one.addEventListener("input", later(0.5, () => {
    last.notifications = [];
    both();
    stop.abort();
    if (!paused) run();
  }));
  both();
  return () => {
    stop.abort();
    charts.forEach((each) => each.close());
  };
}

/** Those that are not in a list: the first message of a stream has some that came before it. */
function newer(given, list) {
  const last = list[0]?.sequence ?? -1;
  return given.filter((each) => each.sequence > last);
}

export function event(each) {
  return el("li", {},
    el("div", { class: "head" }, el("span", {}, `${count(each.sequence)} · ${clock(each.time)}`),
      el("a", { href: `/console/why/${each.sequence}`, "aria-label": `Why: event ${each.sequence}` }, "Why?")),
    json(each.event));
}

function notification(each) {
  return el("li", {},
    el("div", { class: "head" },
      el("a", { href: `/console/subscriptions/${encodeURIComponent(each.subscription)}` },
        `subscription ${each.subscription}`),
      el("span", {}, `event ${count(each.sequence)} · ${clock(each.time)}`)),
    each.event === null ? el("span", { class: "quiet" }, "without the event") : json(each.event));
}
