// Delivery: where notifications are sent, what is tried again, and what was given up.
import { get, path, post } from "../api.js";
import { announce, el, figures, fill, heading, sheet, table } from "../dom.js";
import { count, moment, span } from "../words.js";

export async function show(place) {
  const numbers = el("div"), sinks = sheet("Sinks"), retries = sheet("Waiting for a retry"), dead = sheet("Dead letters");
  const told = el("p", { role: "status" });
  let after = null, letters = 0;

  async function load() {
    const [found, given] = await Promise.all([
      get(path("/console/api/delivery", { after })),
      get(path("/v1/dead-letters", { after: letters, most: 50 })).catch((why) => ({ dead_letters: [], cursor: null, why }))]);
    fill(numbers, figures([["Waiting for a retry", count(found.waiting)], ["Dead letters", count(found.dead)]]));
    showSinks(found);
    fill(retries, el("h2", {}, "Waiting for a retry"), found.retries.length
      ? table("Waiting for a retry", [["Subscription"], ["Event"], ["Attempts", true], ["Next"], ["Last error"]],
        found.retries.map((each) => [subscription(each.subscription), number(each.sequence), each.attempts, due(each.due), each.error]))
      : el("p", { class: "empty" }, found.waiting ? "Those of others come first."
        : "Everything was delivered at once, or given up."));
    showDead(given);
  }

  function showSinks(found) {
    fill(sinks, el("h2", {}, "Sinks"), found.sinks.length
      ? table("Sinks", [["Subscription"], ["Goes to"], ["Waiting", true], ["Dead", true]],
        found.sinks.map(({ subscription: each, waiting, dead: gone }) => [subscription(each.id, each.name),
          each.sink.url ?? `topic ${each.sink.kafka.topic}`, count(waiting),
          gone ? [count(gone), " ", el("button", { class: "small", onclick: () => act(`/v1/subscriptions/${encodeURIComponent(each.id)}/sink/replay`),
            "aria-label": `Try all dead letters of subscription ${each.id} again` }, "Try all again")] : "0"]))
      : el("p", { class: "empty" }, found.cursor === null && after === null
        ? "No subscription sends its notifications to a webhook or a topic." : "None on this page."),
    found.cursor !== null || after !== null ? el("div", { class: "row" },
      el("button", { disabled: after === null, onclick: () => { after = null; load(); } }, "First page"),
      el("button", { disabled: found.cursor === null, onclick: () => { after = found.cursor; load(); } }, "Next")) : null);
  }

  function showDead(given) {
    fill(dead, el("h2", {}, "Dead letters"), given.why ? el("p", { class: "empty" }, given.why.message)
      : given.dead_letters.length
        ? table("Dead letters", [["Subscription"], ["Event"], ["Attempts", true], ["Given up"], ["Error"], [""]],
          given.dead_letters.map((each) => [subscription(each.subscription), number(each.sequence), each.attempts,
            moment(each.moment), each.error, el("button", { class: "small", onclick: () => act(`/v1/dead-letters/${each.id}/retry`),
              "aria-label": `Try dead letter ${each.id} again` }, "Try again")]))
        : el("p", { class: "empty" }, "Nothing was given up."),
    given.cursor !== null || letters ? el("div", { class: "row" },
      el("button", { disabled: !letters, onclick: () => { letters = 0; load(); } }, "First page"),
      el("button", { disabled: given.cursor === null, onclick: () => { letters = given.cursor; load(); } }, "Next")) : null);
  }

  async function act(where) {
    try {
      const { replayed } = await post(where);
      fill(told, el("span", { class: "good" }, `${count(replayed)} will be tried again.`));
      announce(told.textContent);
      await load();
    } catch (why) {
      fill(told, el("span", { class: "bad" }, why.message));
    }
  }

  fill(place, heading("Delivery", el("button", { onclick: load }, "Read again")), numbers, told, sinks, retries, dead);
  await load();
}

const subscription = (id, name) => el("a", { href: `/console/subscriptions/${encodeURIComponent(id)}` }, `${id}${name ? ` ${name}` : ""}`);
const number = (sequence) => (sequence === null ? "end of the lease" : count(sequence));

function due(text) {
  const left = (new Date(text) - Date.now()) / 1000;
  return left > 0 ? `in ${span(left)}` : "now";
}
