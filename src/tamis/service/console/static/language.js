// Conditions in colours, and what may come next: enough of the language to help while typing.
// Whether a condition is right, only the service says.
import { el } from "./dom.js";

const KEYWORDS = new Set(["and", "or", "not", "in", "between", "exists", "missing", "contains",
  "excludes", "starts", "ends", "with", "like", "true", "false", "some", "has", "substring",
  "matches", "within", "subset", "superset", "of", "kind", "is", "null", "scalar", "ignoring", "case"]);
const CLIPPED = 300; // characters
const TOKEN = /("(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'?|`[^`]*`?)|(-?\d[\w.:+-]*)|([\p{L}_@?][\p{L}\p{N}_.]*)|(<=|>=|!=|<>|==|[=<>(),+*/-])|(\s+)|(.)/gu;

/** The words of a condition: `{kind, text, start, end}`; kind is k, s, n, w (a name), o or space. */
export function words(text) {
  const found = [];
  for (const each of text.matchAll(TOKEN)) {
    const [all, string, number, word, sign, space] = each;
    const kind = string ? (string[0] === "`" ? "w" : "s") : number ? "n"
      : word ? (KEYWORDS.has(word.toLowerCase()) ? "k" : "w") : sign ? "o" : space ? "space" : "o";
    found.push({ kind, text: all, start: each.index, end: each.index + all.length });
  }
  return found;
}

/** A condition as text nodes in colours. `wrong` is an offset: the word there is underlined. */
export function coloured(text, wrong = null) {
  const found = words(text).map(({ kind, text: word, start, end }) => {
    const names = [kind === "w" || kind === "space" ? "" : kind,
      wrong !== null && kind !== "space" && start <= wrong && wrong < end ? "wrong-word" : ""].filter(Boolean);
    return names.length ? el("span", { class: names.join(" ") }, word) : word;
  });
  if (wrong !== null && wrong >= text.trimEnd().length) found.push(el("span", { class: "wrong-word" }, "  "));
  return found;
}

/** A condition; `clip` is for lists: a line, of which no more is coloured than can be seen. */
export function condition(text, clip = false) {
  const shown = clip && text.length > CLIPPED ? `${text.slice(0, CLIPPED)}…` : text;
  return el("span", { class: clip ? "condition clip" : "condition" }, coloured(shown));
}

/** The offset of a place in a text: lines and columns from 1. */
export function offset(text, line, column) {
  const before = text.split("\n").slice(0, line - 1).join("\n").length;
  return before + (line > 1 ? 1 : 0) + column - 1;
}

const ORDERED = ["<", "<=", ">", ">=", "between"];
const ALWAYS = ["exists", "missing"];
const COMPARATORS = {
  text: ["=", "!=", "starts with", "ends with", "has substring", "like", "in", ...ALWAYS],
  decimal: ["=", "!=", ...ORDERED, "in", ...ALWAYS],
  enumerated: ["=", "!=", "in", ...ORDERED, ...ALWAYS],
  hierarchy: ["<=", "=", "<", "!=", "of kind", "in", ...ALWAYS],
  boolean: ["=", "!=", ...ALWAYS],
  structs: ALWAYS,
  dynamic: ["=", "!=", ...ORDERED, "starts with", "in", ...ALWAYS],
};
const AFTER_WORD = new Set(["=", "!=", "<", "<=", ">", ">=", "==", "<>", "contains", "excludes", "with",
  "substring", "like", "kind", "between", "in", "(", ","]);

/** The names, kinds and values of a schema, and of some events if it takes any JSON. */
export class Vocabulary {
  constructor(schema, events = []) {
    this.names = new Map();
    for (const [name, spec] of Object.entries(schema.attributes ?? {})) {
      this.names.set(name, resolve(spec, schema.domains ?? {}));
    }
    const types = Object.keys(schema.event_types ?? {});
    if (types.length > 1) this.names.set("event_type", { kind: "enumerated", values: types });
    if (schema.unknown === "dynamic" || !this.names.size) {
      for (const each of events) this.learn("", each);
    }
  }

  learn(before, event) {
    for (const [name, value] of Object.entries(event)) {
      const full = before + (/^[\p{L}_][\p{L}\p{N}_]*$/u.test(name) ? name : `\`${name}\``);
      if (value && typeof value === "object" && !Array.isArray(value)) this.learn(`${full}.`, value);
      else if (!this.names.has(full) && this.names.size < 500) {
        const kind = typeof value === "string" ? "text" : typeof value === "number" ? "decimal" : "dynamic";
        this.names.set(full, { kind, values: [] });
      }
    }
  }

  /** What may stand at a place: `{start, choices: [{text, about}]}`. */
  choices(text, caret) {
    const before = words(text.slice(0, caret)).filter(({ kind }) => kind !== "space");
    const last = before.at(-1);
    const open = last && last.end === caret && (last.kind === "w" || last.kind === "k" || last.text === '"'
      || (last.kind === "s" && !/.["']$/.test(last.text))) ? last : null;
    const prefix = (open?.text ?? "").replace(/^["'`]/, "").toLowerCase();
    const done = open ? before.slice(0, -1) : before;
    const all = this.next(done);
    const begin = all.filter((each) => each.text.replace(/^["`]/, "").toLowerCase().startsWith(prefix));
    const within = prefix.length < 2 ? [] : all.filter((each) => !begin.includes(each) && each.text.toLowerCase().includes(prefix));
    const choices = [...begin, ...within].filter((each) => each.text !== open?.text).slice(0, 40);
    return { start: open ? open.start : caret, choices };
  }

  next(done) {
    const last = done.at(-1);
    const word = last?.text.toLowerCase();
    const name = done.findLast(({ kind, text }) => kind === "w" && this.names.has(text));
    const domain = name && this.names.get(name.text);
    const inList = last && (word === "(" || word === ",") && ["in", "of", "kind"].includes(done.at(done.findLastIndex(({ text }) => text === "(") - 1)?.text.toLowerCase());
    if (!last || ["and", "or", "not"].includes(word) && !this.ranges(done) || (word === "(" && !inList)) return this.starts(last);
    if (last.kind === "w" && this.names.has(last.text)) {
      return (COMPARATORS[kindOf(domain)] ?? COMPARATORS.decimal).map((text) => ({ text, about: "" }));
    }
    if (domain && (AFTER_WORD.has(word) || this.ranges(done))) return valuesOf(domain);
    return [{ text: "and", about: "" }, { text: "or", about: "" }];
  }

  ranges(done) { // "and" belongs to "between"
    return done.at(-1)?.text === "and" && done.at(-3)?.text.toLowerCase() === "between";
  }

  starts(last) {
    const found = [...this.names].map(([text, domain]) => ({ text, about: domain.kind }));
    if (last?.text.toLowerCase() !== "not") found.push({ text: "not", about: "" });
    return found;
  }
}

function resolve(spec, domains) {
  if (typeof spec === "string") return domains[spec] ? resolve(domains[spec], {}) : { kind: spec, values: [] };
  const kind = spec.kind ?? "dynamic";
  const values = Array.isArray(spec.values) ? spec.values : [...Object.keys(spec.parents ?? {}), ...namesIn(spec.tree ?? {})];
  return { ...spec, kind, values: [...new Set(values)] };
}

export function namesIn(tree) {
  return Object.entries(tree).flatMap(([name, below]) => [name, ...namesIn(below ?? {})]);
}

const kindOf = (domain) => (domain.kind === "integer" || domain.kind === "timestamp" ? "decimal" : domain.kind);

function valuesOf(domain) {
  if (domain.kind === "boolean") return [{ text: "true", about: "" }, { text: "false", about: "" }];
  return (domain.values ?? []).map((value) => ({
    text: /^[\p{L}_][\p{L}\p{N}_]*$/u.test(value) && !KEYWORDS.has(value) ? value : JSON.stringify(value), about: "" }));
}
