// Where events happen, and who is notified of them. What is kept here has a bound.
import { follow, get } from "../api.js";
import { el, fill, heading, sheet, svg } from "../dom.js";
import { clock, count } from "../words.js";

const WIDTH = 640, SEEN = 150, HITS = 60, KINDS = 6, PICTURE = 2000; // the last in milliseconds

/** Draws longitudes and latitudes: near enough to true for a city. */
function projection(features) {
  const all = [];
  const collect = (part) => (typeof part[0] === "number" ? all.push(part) : part.forEach(collect));
  features.forEach((each) => collect(each.geometry.coordinates));
  const [west, east] = [Math.min(...all.map((p) => p[0])), Math.max(...all.map((p) => p[0]))];
  const [south, north] = [Math.min(...all.map((p) => p[1])), Math.max(...all.map((p) => p[1]))];
  const squeeze = Math.cos((south + north) / 2 * Math.PI / 180);
  const scale = WIDTH / ((east - west) * squeeze);
  return {
    height: Math.ceil((north - south) * scale),
    point: ([x, y]) => [((x - west) * squeeze * scale).toFixed(1), ((north - y) * scale).toFixed(1)],
  };
}

function land(feature, point) {
  const polygons = feature.geometry.type === "Polygon" ? [feature.geometry.coordinates] : feature.geometry.coordinates;
  const path = polygons.flat().map((ring) => `M${ring.map((each) => point(each).join(" ")).join("L")}Z`).join("");
  return svg("path", { d: path, class: "land" }, svg("title", {}, feature.properties.name));
}

function place(feature, point) {
  const [x, y] = point(feature.geometry.coordinates);
  return svg("g", { class: "place" }, svg("circle", { cx: x, cy: y, r: 2 }),
    svg("text", { x: Number(x) + 5, y: Number(y) + 4 }, feature.properties.name));
}

export async function show(where) {
  const [{ features }, { subscriptions }] = await Promise.all(
    [get("/console/api/places"), get("/v1/subscriptions?most=100")]);
  const named = new Map(subscriptions.map((each, at) => [String(each.id), { ...each, kind: at % KINDS }]));
  const { height, point } = projection(features);
  const seen = svg("g"), hits = svg("g");
  const state = el("span", { class: "tag", role: "status" }, "connecting");
  const feed = el("ol", { class: "list feed", "aria-label": "Latest notifications", tabindex: "0" },
    el("li", { class: "empty" }, "Nothing yet."));
  const picture = el("div", { class: "empty" }, "The picture of a notification appears here.");
  const lines = [];
  let pictured = 0;
  const stop = new AbortController();

  fill(where, heading("Map", state),
    el("div", { class: "two" },
      el("div", { class: "stack" }, sheet(null, svg("svg", { viewBox: `0 0 ${WIDTH} ${height}`, class: "map", role: "img",
        "aria-label": "Events and notifications on a map" },
      ...features.filter((each) => each.geometry.type !== "Point").map((each) => land(each, point)),
      seen,
      ...features.filter((each) => each.geometry.type === "Point").map((each) => place(each, point)),
      hits)), sheet("The last picture", picture)),
      el("div", { class: "stack" },
        sheet("Subscriptions", el("ul", { class: "list" }, subscriptions.slice(0, 20).map((each) =>
          el("li", {}, el("span", { class: `swatch kind-${named.get(String(each.id)).kind}` }), " ",
            el("a", { href: `/console/subscriptions/${encodeURIComponent(each.id)}` }, each.name ?? `subscription ${each.id}`),
            el("div", { class: "condition" }, each.condition))))),
        sheet("Notifications", feed))));

  function draw(group, at, props, most, label) {
    const [x, y] = point(at);
    group.append(svg("circle", { cx: x, cy: y, ...props }, svg("title", {}, label)));
    while (group.childElementCount > most) group.firstElementChild.remove();
  }

  async function showPicture(each, who) {
    if (Date.now() - pictured < PICTURE) return;
    pictured = Date.now();
    const event = await get(`/v1/events/${each.sequence}`).catch(() => null);
    if (typeof event?.image !== "string") return;
    const kind = event.image.startsWith("/9j/") ? "jpeg" : "png";
    fill(picture, el("img", { class: "picture", src: `data:image/${kind};base64,${event.image}`,
      alt: `Event ${each.sequence}, of which ${who} was notified` }),
    el("p", { class: "fine quiet" }, `event ${count(each.sequence)} for ${who}`));
  }

  function take(message) {
    for (const each of message.sample.reverse()) {
      if (each.at) draw(seen, each.at, { r: 3, class: "seen" }, SEEN, `event ${each.sequence}`);
    }
    for (const each of message.notifications) {
      const known = named.get(String(each.subscription));
      const who = known?.name ?? `subscription ${each.subscription}`;
      if (each.at) {
        draw(hits, each.at, { r: 7, class: `hit kind-${known?.kind ?? 0}` }, HITS, `${who}: event ${each.sequence}`);
        showPicture(each, who);
      }
      lines.unshift(el("li", {}, el("div", { class: "head" },
        el("span", {}, el("span", { class: `swatch kind-${known?.kind ?? 0}` }), " ", who),
        el("span", {}, `event ${count(each.sequence)} · ${clock(each.time)}`))));
    }
    lines.length = Math.min(lines.length, HITS);
    if (message.notifications.length) fill(feed, lines);
  }

  follow("/console/api/live", take, (on) => { state.textContent = on ? "live" : "reconnecting"; }, stop.signal)
    .catch((why) => { if (why.status !== 401) state.textContent = "stopped"; });
  return () => stop.abort();
}
