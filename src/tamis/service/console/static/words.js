// Numbers, times and JSON as people read them.
import { el } from "./dom.js";

const whole = new Intl.NumberFormat("en");
const short = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });

export const count = (value) => whole.format(Math.round(value));

/** A number and a noun: "1 file", "2 files". */
export const many = (value, noun) => `${count(value)} ${noun}${value === 1 ? "" : "s"}`;

export function figure(value) {
  if (value === null || value === undefined) return "–";
  return Math.abs(value) >= 1000 ? count(value) : short.format(value);
}

export function milliseconds(value) {
  if (value === null || value === undefined) return "–";
  return value >= 1000 ? `${short.format(value / 1000)} s` : `${short.format(value)} ms`;
}

export function bytes(value) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let at = 0;
  for (; value >= 1024 && at < units.length - 1; at += 1) value /= 1024;
  return `${short.format(value)} ${units[at]}`;
}

export function clock(text) {
  return text ? new Date(text).toLocaleTimeString("en-GB", { hour12: false }) : "";
}

export function moment(text) {
  return text ? new Date(text).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" }) : "";
}

/** How long something takes: "3 h", "2 days". */
export function span(seconds) {
  const steps = [[86400, "day"], [3600, "h"], [60, "min"], [1, "s"]];
  const [unit, name] = steps.find(([size]) => Math.abs(seconds) >= size) ?? steps[3];
  const many = Math.round(seconds / unit);
  return `${many} ${name}${name === "day" && many !== 1 ? "s" : ""}`;
}

export function leaseEnd(until) {
  if (!until) return "does not end";
  const left = (new Date(until) - Date.now()) / 1000;
  return left > 0 ? `ends in ${span(left)}` : "has ended";
}

/** JSON in colours, as text nodes. */
export function json(text, pretty = false) {
  let shown = text;
  try {
    if (pretty) shown = JSON.stringify(JSON.parse(text), null, 2);
  } catch { /* it was cut off: shown as it is */ }
  const parts = [];
  const token = /("(?:[^"\\]|\\.)*"?)(\s*:)?|(-?\d[\d.eE+-]*|true|false|null)|([^"\d-]+|-)/g;
  for (const [all, string, colon, number] of String(shown).matchAll(token)) {
    if (string && colon) parts.push(all);
    else if (string) parts.push(el("span", { class: "s" }, all));
    else if (number) parts.push(el("span", { class: "n" }, all));
    else parts.push(el("span", { class: "o" }, all));
  }
  return el("code", {}, parts);
}
