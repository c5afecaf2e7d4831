// A field for a condition: colours, completion, and the service's errors under the word.
import { get, post } from "./api.js";
import { el, fill, later } from "./dom.js";
import { Vocabulary, coloured, offset } from "./language.js";

export async function readVocabulary(context) {
  const schema = await get("/v1/schema");
  const open = schema.unknown === "dynamic" || !Object.keys(schema.attributes ?? {}).length;
  let events = [];
  if (open && context.may("publisher")) {
    events = (await get("/console/api/events").catch(() => ({ events: [] }))).events
      .filter((each) => each.whole).map((each) => JSON.parse(each.event));
  }
  return new Vocabulary(schema, events);
}

let editors = 0;

/** `{place, value(), set(text)}`; `changed(text, error)` is called when the service has checked. */
/** Without a vocabulary, nothing is completed: it knows only the language of tamis. */
export function conditionEditor(vocabulary, { value = "", label = "Condition", language, changed = () => {} } = {}) {
  const id = `condition-${(editors += 1)}`;
  const area = el("textarea", { id, value, rows: "3", spellcheck: "false", autocapitalize: "off",
    autocomplete: "off", "aria-autocomplete": "list", "aria-controls": `${id}-choices`,
    "aria-describedby": `${id}-message` });
  const shadow = el("pre", { class: "shadow", "aria-hidden": "true" });
  const list = el("ul", { class: "choices", role: "listbox", id: `${id}-choices`, "aria-label": "What may come next", hidden: true });
  const message = el("p", { class: "message", id: `${id}-message`, role: "status" });
  let wrong = null, found = { start: 0, choices: [] }, chosen = -1, asked = 0;

  function paint() {
    fill(shadow, coloured(area.value, wrong), "\u200b");
    area.style.height = "auto";
    area.style.height = `${Math.max(90, area.scrollHeight + 2)}px`;
  }

  const check = later(0.25, async () => {
    const text = area.value, mine = (asked += 1);
    if (!text.trim()) {
      fill(message, vocabulary ? el("span", { class: "quiet" }, "Ctrl+Space shows what may come next.") : null);
      changed(text, "empty");
      return;
    }
    let error = null;
    try {
      await post("/v1/check", { condition: text, language });
    } catch (why) {
      error = why;
    }
    if (mine !== asked) return;
    wrong = error?.body?.column ? offset(text, error.body.line ?? 1, error.body.column) : null;
    area.setAttribute("aria-invalid", String(error !== null));
    fill(message, error === null ? el("span", { class: "good" }, "✓ The condition is valid.") : mistake(error));
    paint();
    changed(text, error);
  });

  function mistake(error) {
    const [first] = error.message.split("\n");
    const hint = error.body?.hint;
    const shown = [el("span", { class: "bad" }, first)];
    if (hint && !first.includes(hint)) shown.push(el("span", { class: "quiet" }, ` — ${hint}`));
    return shown;
  }

  function open(forced = false) {
    const caret = area.selectionStart;
    found = vocabulary && area.selectionEnd === caret ? vocabulary.choices(area.value, caret) : { start: 0, choices: [] };
    const typed = caret > found.start;
    if (!found.choices.length || !(typed || forced || /\s$/.test(area.value.slice(0, caret)))) return close();
    chosen = forced || typed ? 0 : -1;
    fill(list, found.choices.map((each, at) => el("li", { role: "option", id: `${id}-${at}`,
      "aria-selected": "false", onmousedown: (event) => { event.preventDefault(); take(at); } },
    each.text, each.about ? el("span", {}, each.about) : null)));
    list.hidden = false;
    move();
    mark();
  }

  function move() { // to the word that is typed: where it begins in the coloured copy
    const range = document.createRange();
    let left = found.start;
    const walk = document.createTreeWalker(shadow, NodeFilter.SHOW_TEXT);
    for (let node = walk.nextNode(); node; node = walk.nextNode()) {
      if (left <= node.length) {
        range.setStart(node, left);
        break;
      }
      left -= node.length;
    }
    const at = range.getBoundingClientRect(), box = shadow.getBoundingClientRect();
    const x = at.left ? at.left - box.left : 12, y = at.bottom ? at.bottom - box.top : 32;
    list.style.top = `${y + 4}px`;
    list.style.left = `${Math.max(0, Math.min(x - 8, box.width - 216))}px`;
  }

  function mark() {
    [...list.children].forEach((each, at) => each.setAttribute("aria-selected", String(at === chosen)));
    if (chosen >= 0) {
      area.setAttribute("aria-activedescendant", `${id}-${chosen}`);
      list.children[chosen].scrollIntoView({ block: "nearest" });
    } else area.removeAttribute("aria-activedescendant");
  }

  function close() {
    list.hidden = true;
    area.removeAttribute("aria-activedescendant");
  }

  function take(at) {
    const text = found.choices[at].text, end = area.selectionStart;
    area.setRangeText(`${text} `, found.start, end, "end");
    wrong = null;
    paint();
    check();
    open();
  }

  area.addEventListener("keydown", (event) => {
    if (event.key === " " && event.ctrlKey) {
      event.preventDefault();
      open(true);
      return;
    }
    if (list.hidden) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      chosen = (chosen + step + found.choices.length) % found.choices.length;
      mark();
    } else if ((event.key === "Enter" || event.key === "Tab") && chosen >= 0) take(chosen);
    else if (event.key === "Escape") close();
    else return;
    event.preventDefault();
  });
  area.addEventListener("input", () => { wrong = null; paint(); open(); check(); });
  area.addEventListener("blur", close);
  area.addEventListener("scroll", () => { shadow.scrollTop = area.scrollTop; });
  paint();
  check();
  requestAnimationFrame(paint);
  return {
    place: el("div", { class: "field" }, el("label", { for: id }, label),
      el("div", { class: "editor" }, shadow, area, list), message),
    value: () => area.value,
    set(text) { area.value = text; wrong = null; paint(); check(); },
  };
}
