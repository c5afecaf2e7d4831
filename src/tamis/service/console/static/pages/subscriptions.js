// Subscriptions: the list, and where its parts are.
import { get, path } from "../api.js";
import { announce, el, field, fill, heading, later, table } from "../dom.js";
import { condition } from "../language.js";
import { count, leaseEnd } from "../words.js";
import { edit } from "./subscription_edit.js";
import { one } from "./subscription_one.js";

const PAGE = 50;

export async function show(place, context, id, action) {
  if (id === "new" || action === "edit") return edit(place, context, id === "new" ? null : id);
  if (id !== undefined) return one(place, context, id);
  return all(place, context);
}

async function all(place, context) {
  const query = el("input", { type: "search", placeholder: "text of the condition or the name",
    value: new URLSearchParams(location.search).get("q") ?? "" });
  const order = el("select", {},
    [["newest", "newest first"], ["oldest", "oldest first"], ["ending", "lease ends soonest"]]
      .map(([value, text]) => el("option", { value }, text)));
  const rows = el("div"), total = el("p", { class: "quiet" });
  const back = el("button", { disabled: true }, "Back"), next = el("button", {}, "Next");
  let cursors = [null], following = null, asked = 0;

  async function load() {
    const mine = (asked += 1);
    const listed = [];
    // A search through very many is answered in parts, so that something can be seen at once.
    for (let looked = 0, cursor = cursors.at(-1); ;) {
      const found = await get(path("/console/api/subscriptions",
        { q: query.value, order: order.value, cursor, most: PAGE - listed.length })).catch((why) => why);
      if (mine !== asked) return;
      if (found instanceof Error) {
        fill(rows, el("p", { class: "bad" }, found.message));
        return;
      }
      listed.push(...found.subscriptions);
      looked += found.looked;
      cursor = following = found.cursor;
      const whole = cursor === null || listed.length >= PAGE;
      paint(listed, whole ? null : `Looking through ${count(found.live)}: ${Math.min(99, Math.floor(looked / found.live * 100))} %`, found.live);
      if (whole) break;
    }
    announce(total.textContent);
    back.disabled = cursors.length === 1;
    next.disabled = following === null;
  }

  function paint(listed, looking, live) {
    const first = (cursors.length - 1) * PAGE;
    total.textContent = looking ?? (listed.length
      ? `${count(first + 1)} to ${count(first + listed.length)}${query.value ? " of those found" : ` of ${count(live)}`}` : "");
    fill(rows, listed.length
      ? table("Subscriptions", [["Subscription"], ["Condition"], ["Owner"], ["Lease"]],
        listed.map((each) => [
          el("a", { href: `/console/subscriptions/${encodeURIComponent(each.id)}` },
            String(each.id), each.name ? ` ${each.name}` : null),
          condition(each.condition, true), each.owner ?? el("span", { class: "quiet" }, "–"),
          leaseEnd(each.until)]))
      : looking ? null : el("p", { class: "empty" }, query.value ? "No subscription has this text."
        : "There are no subscriptions yet. Make the first one."));
  }

  function again() {
    cursors = [null];
    history.replaceState(null, "", path(location.pathname, { q: query.value }));
    return load();
  }

  query.addEventListener("input", later(0.05, again));
  order.addEventListener("change", again);
  next.addEventListener("click", () => { cursors.push(following); load(); });
  back.addEventListener("click", () => { cursors.pop(); load(); });
  const grow = field("Search", query);
  grow.classList.add("grow");
  fill(place,
    heading("Subscriptions", context.may("subscriber")
      ? el("a", { class: "button main", href: "/console/subscriptions/new" }, "New subscription") : null),
    el("div", { class: "row end" }, grow, field("Order", order)),
    el("div", { class: "sheet" }, rows, el("div", { class: "row spread" }, total, el("div", { class: "row" }, back, next))));
  await load();
}
