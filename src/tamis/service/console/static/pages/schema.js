// The schema: types, attributes, hierarchies as trees, its history; and extensions by five rules.
import { get, post } from "../api.js";
import { announce, el, field, fill, heading, sheet, table } from "../dom.js";
import { count, moment } from "../words.js";

const KINDS = ["text", "decimal", "integer", "boolean", "timestamp"];

export async function show(place, context) {
  const read = () => Promise.all([get("/v1/schema"), get("/console/api/schema-history")]);
  const [schema, history] = await read();
  const types = el("div", { class: "stack" }), attributes = sheet("Attributes"), domains = el("div", { class: "stack" });
  const past = sheet("History"), version = el("span", { class: "tag" });

  function paint(found, changes) {
    version.textContent = `version ${found.version ?? 1}`;
    const named = found.domains ?? {};
    fill(types, Object.entries(found.event_types ?? {}).map(([name, uses]) => sheet(`Event type ${name}`,
      el("ul", { class: "row list-plain" }, Object.entries(uses).map(([attribute, use]) => el("li", {},
        el("span", { class: "mono" }, attribute), " ", el("span", { class: "tag" }, use)))),
      name === found.default_event_type ? el("p", { class: "quiet fine" }, "The type of events that name none.") : null)));
    const rows = Object.entries(found.attributes ?? {}).map(([name, spec]) =>
      [el("span", { class: "mono" }, name), domainText(spec)]);
    fill(attributes, el("h2", {}, "Attributes"), rows.length ? table("Attributes", [["Attribute"], ["Values"]], rows, false)
      : el("p", { class: "empty" }, "It declares none: this service takes any JSON."));
    fill(domains, Object.entries(named).map(([name, spec]) => sheet(`Domain ${name}`,
      el("p", { class: "quiet fine" }, spec.kind), values(spec))));
    fill(past, el("h2", {}, "History"), el("ol", { class: "list" }, changes.map((each) => el("li", {},
      el("div", { class: "quiet fine" }, `version ${each.version}, from ${count(each.sequence)} on${each.moment ? ` · ${moment(each.moment)}` : ""}`),
      each.new.map((line) => el("p", {}, line))))));
  }

  paint(schema, history);
  fill(place, heading("Schema", version),
    el("div", { class: "two" },
      el("div", { class: "stack" }, attributes, types),
      el("div", { class: "stack" },
        context.may("publisher") ? extension(async () => paint(...await read())) : null, domains, past)));
}

function domainText(spec) {
  if (typeof spec === "string") return spec;
  const inner = spec.attributes ? ` of ${Object.keys(spec.attributes).join(", ")}` : "";
  return `${spec.kind ?? "domain"}${inner}`;
}

function values(spec) {
  if (spec.tree) return tree(spec.tree);
  if (spec.parents) return tree(treeOf(spec.parents));
  if (spec.values) {
    return el("div", { class: "stack tight" },
      el("p", {}, spec.values.map((each, at) => [at ? " " : null, el("span", { class: "tag" }, each)])),
      spec.order?.length ? el("p", { class: "fine quiet" }, spec.order.map(([low, high]) => `${low} < ${high}`).join(", ")) : null);
  }
  const rest = Object.entries(spec).filter(([name]) => name !== "kind");
  return rest.length ? el("p", { class: "mono" }, rest.map(([name, value]) => `${name} ${JSON.stringify(value)}`).join(", ")) : null;
}

const SHOWN = {}; // what is below a name that is in the tree already

/** Parents as a tree; what has several parents is under each of them, and its tree under the first. */
function treeOf(parents) {
  const below = new Map(), shown = new Set();
  for (const [name, above] of Object.entries(parents)) {
    below.set(name, below.get(name) ?? []);
    for (const each of [above ?? []].flat()) below.set(each, [...(below.get(each) ?? []), name]);
  }
  function grown(name) {
    const names = below.get(name);
    if (names.length && shown.has(name)) return SHOWN;
    shown.add(name);
    return Object.fromEntries(names.map((each) => [each, grown(each)]));
  }
  const tops = [...below.keys()].filter((name) => ![parents[name] ?? []].flat().length);
  return Object.fromEntries(tops.map((each) => [each, grown(each)]));
}

function tree(of, first = true) {
  return el("ul", { class: first ? "tree" : null }, Object.entries(of ?? {}).map(([name, below]) =>
    el("li", {}, el("span", { class: "mono" }, name),
      below === SHOWN ? el("span", { class: "quiet fine" }, " (see above)") : null,
      Object.keys(below ?? {}).length ? tree(below, false) : null)));
}

/** A form for each of the five rules by which a schema may grow. */
function extension(done) {
  const rule = el("select", {}, [["attribute", "an attribute"], ["use", "an attribute to an event type"],
    ["type", "an event type"], ["domain", "a domain"], ["values", "values to a domain"]]
    .map(([value, text]) => el("option", { value }, text)));
  const fields = el("div", { class: "stack tight" }), told = el("p", { role: "status" });
  const inputs = {};
  const forms = {
    attribute: () => [input("name", "Name"), input("domain", "Values", `${KINDS.join(", ")}, or the name of a domain`)],
    use: () => [input("type", "Event type"), input("attribute", "Attribute"), choice("use", "Use", ["optional", "optional multiple"])],
    type: () => [input("name", "Name"), area("attributes", "Attributes", "one on each line: price: mandatory")],
    domain: () => [input("name", "Name"), choice("kind", "Kind", ["enumerated", "hierarchy"]),
      area("values", "Values", "one on each line; in a hierarchy, with two spaces before what is below")],
    values: () => [input("name", "Domain"), area("values", "New values", "one on each line; in a hierarchy: value: parent")],
  };
  const requests = {
    attribute: () => ["attributes", { name: inputs.name.value, domain: inputs.domain.value }],
    use: () => [`event-types/${encodeURIComponent(inputs.type.value)}/attributes`, { attribute: inputs.attribute.value, use: inputs.use.value }],
    type: () => ["event-types", { name: inputs.name.value, attributes: pairs(inputs.attributes.value) }],
    domain: () => ["domains", { name: inputs.name.value, domain: inputs.kind.value === "hierarchy"
      ? { kind: "hierarchy", tree: indented(inputs.values.value) } : { kind: "enumerated", values: lines(inputs.values.value) } }],
    values: () => [`domains/${encodeURIComponent(inputs.name.value)}/values`, {
      values: inputs.values.value.includes(":") ? pairs(inputs.values.value) : lines(inputs.values.value) }],
  };
  const put = (name, control, label, help) => { inputs[name] = control; return field(label, control, help); };
  const input = (name, label, help) => put(name, el("input", { required: true }), label, help);
  const area = (name, label, help) => put(name, el("textarea", { rows: "4", required: true }), label, help);
  const choice = (name, label, options) => put(name, el("select", {}, options.map((each) => el("option", {}, each))), label);
  const paint = () => fill(fields, forms[rule.value]());

  async function send(event) {
    event.preventDefault();
    const [path, body] = requests[rule.value]();
    try {
      const made = await post(`/v1/schema/${path}`, body);
      fill(told, el("span", { class: "good" }, `Done: version ${made.version} holds from ${count(made.sequence + 1)} on.`));
      announce("The schema was extended.");
      paint();
      await done();
    } catch (why) {
      fill(told, el("span", { class: "bad" }, why.message.split("\n")[0]));
    }
  }
  rule.addEventListener("change", () => { fill(told); paint(); });
  paint();
  return sheet("Extend it", el("form", { class: "stack tight", onsubmit: send }, field("Add", rule), fields,
    el("div", {}, el("button", { class: "main" }, "Extend"))), told,
  el("p", { class: "fine quiet" }, "A schema only grows: no subscription and no publisher breaks. An extension cannot be taken back."));
}

const lines = (text) => text.split("\n").map((each) => each.trim()).filter(Boolean);

function pairs(text) {
  return Object.fromEntries(lines(text).map((line) => {
    const [name, ...rest] = line.split(":");
    return [name.trim(), rest.join(":").trim()];
  }));
}

/** A tree from lines, each under the last one with fewer spaces before it. */
function indented(text) {
  const top = {}, open = [[-1, top]];
  for (const line of text.split("\n").filter((each) => each.trim())) {
    const depth = line.length - line.trimStart().length;
    while (open.at(-1)[0] >= depth) open.pop();
    const below = {};
    open.at(-1)[1][line.trim()] = below;
    open.push([depth, below]);
  }
  return top;
}
