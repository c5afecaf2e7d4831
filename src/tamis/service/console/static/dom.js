// Elements, made without any text that could become markup: data is always a text node.

const SVG = "http://www.w3.org/2000/svg";

/** An element: `el("p", {class: "quiet", onclick: f}, "text", other)`. */
export function el(tag, props = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "width") made.style.width = value;
    else if (name === "value") made.value = value;
    else made.setAttribute(name, value === true ? "" : String(value));
  }
  made.append(...children.flat(Infinity).filter((each) => each !== null && each !== undefined && each !== false));
  return made;
}

export function fill(parent, ...children) {
  parent.replaceChildren(...children.flat(Infinity).filter((each) => each !== null && each !== undefined && each !== false));
  return parent;
}

/** A field with its label; `control` gets an id. */
let fields = 0;
export function field(label, control, help) {
  control.id ||= `field-${(fields += 1)}`;
  const about = help ? el("p", { class: "fine quiet", id: `${control.id}-help` }, help) : null;
  if (about) control.setAttribute("aria-describedby", about.id);
  return el("div", { class: "field" }, el("label", { for: control.id }, label), control, about);
}

/** A section with a heading. */
export function sheet(title, ...children) {
  return el("section", { class: "sheet" }, title ? el("h2", {}, title) : null, ...children);
}

export function heading(title, ...beside) {
  return el("div", { class: "row spread" }, el("h1", { tabindex: "-1" }, title),
    el("div", { class: "row" }, ...beside));
}

/** Figures in a row: `[["Events a second", node], …]`. */
export function figures(pairs) {
  return el("dl", { class: "figures" }, pairs.map(([name, value]) =>
    el("div", {}, el("dt", {}, name), value instanceof Node && value.tagName === "DD" ? value : el("dd", {}, value))));
}

export function facts(pairs) {
  return el("dl", { class: "facts" }, pairs.filter(([, value]) => value !== null && value !== undefined)
    .map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
}

/** A table: columns are `[title, number?]`, rows are lists of cells. */
export function table(label, columns, rows, cards = true) {
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label },
    el("table", { class: cards ? "cards" : null },
      el("thead", {}, el("tr", {}, columns.map(([title, number]) =>
        el("th", { scope: "col", class: number ? "number" : null }, title)))),
      el("tbody", {}, rows.map((row) => el("tr", {}, row.map((cell, at) =>
        el("td", { class: columns[at][1] ? "number" : null, "data-label": at && columns[at][0] !== "Condition" ? columns[at][0] : null }, cell)))))));
}

/** A bar whose length is a share of a whole. */
export function meter(share, second = false) {
  return el("div", { class: second ? "meter second" : "meter", "aria-hidden": "true" },
    el("i", { width: `${Math.max(0, Math.min(1, share)) * 100}%` }));
}

export function svg(tag, props = {}, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(props)) made.setAttribute(name, String(value));
  made.append(...children);
  return made;
}

/** Say something to those who cannot see what has changed. */
export function announce(text) {
  document.getElementById("announcements").textContent = text;
}

/** A question with two answers; true if it was confirmed. */
export function confirm(question, action) {
  return new Promise((resolve) => {
    const box = el("dialog", { "aria-label": question },
      el("div", { class: "stack tight" }, el("p", {}, question),
        el("div", { class: "row" },
          el("button", { class: "main", onclick: () => box.close("yes") }, action),
          el("button", { onclick: () => box.close("") }, "Back"))));
    box.addEventListener("close", () => { box.remove(); resolve(box.returnValue === "yes"); });
    document.body.append(box);
    box.showModal();
  });
}

export function later(seconds, work) {
  let timer = 0;
  const called = (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => work(...given), seconds * 1000);
  };
  called.stop = () => clearTimeout(timer);
  return called;
}
