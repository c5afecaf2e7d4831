// Health: what fails, how far the service is, and how much room there is.
import { get } from "../api.js";
import { el, facts, figures, fill, heading, meter, sheet, table } from "../dom.js";
import { bytes, count, many, span } from "../words.js";

export async function show(place) {
  let timer = 0;
  async function load() {
    const found = await get("/console/api/health");
    const largest = Math.max(1, ...found.folders.map((each) => each.bytes));
    fill(body,
      found.failing.length
        ? el("div", { class: "note wrong", role: "alert" }, found.failing.map((each) => el("p", {}, each)))
        : el("p", { class: "note" }, "Everything works. What is acknowledged is on disk."),
      figures([["Rows in the log", count(found.end - found.begin)], ["Matching is behind", span(found.lag_seconds)],
        ["Live subscriptions", count(found.live)], ["Open streams", count(found.streams)],
        ["Free on the disk", bytes(found.disk_free)]]),
      el("div", { class: "two" },
        sheet("On disk", el("ul", { class: "list" }, found.folders.map((each) => el("li", { class: "stack tight" },
          el("div", { class: "row spread" }, el("span", { class: "mono" }, each.name),
            el("span", {}, `${bytes(each.bytes)} `, el("span", { class: "quiet" }, many(each.files, "file")))),
          meter(each.bytes / largest)))),
        el("p", { class: "quiet fine" }, `The disk is ${Math.round((1 - found.disk_free / found.disk_total) * 100)} % full.`)),
        sheet("Log and matching", facts([["First kept", count(found.begin)], ["Next number", count(found.end)],
          ["Matched by", found.matching], ["Not matched", found.left_out ? `${many(found.left_out, "subscription")}, see Matcher` : "none"],
          ["Versions", found.versions.length ? found.versions.slice(-8).map(count).join(", ") : "none yet"],
          ...Object.entries(found.kept).map(([name, value]) => [name.replaceAll("_", " "), limit(name, value)])]))),
      sheet("Limits", table("Limits", [["Setting"], ["Value", true]], Object.entries(found.limits)
        .map(([name, value]) => [el("span", { class: "mono" }, `limit-${name.replaceAll("_", "-")}`), limit(name, value)]), false)));
  }
  const body = el("div", { class: "stack" });
  fill(place, heading("Health"), body);
  await load();
  timer = setInterval(() => { if (!document.hidden) load().catch(() => {}); }, 5000);
  return () => clearInterval(timer);
}

function limit(name, value) {
  if (value === null) return name.startsWith("keep") ? "forever" : "by default";
  if (name.includes("bytes")) return bytes(value);
  if (name === "lease_warning" || (name.startsWith("keep") && !name.includes("bytes"))) return span(value);
  return count(value);
}
