// Create or change a subscription: the condition is checked while it is typed, and tried on the
// events that are kept before it is saved.
import { get, patch, post, remove } from "../api.js";
import { announce, el, field, fill, heading, later, sheet } from "../dom.js";
import { conditionEditor, readVocabulary } from "../condition_editor.js";
import { count, figure, json } from "../words.js";

const EVENTS = 10_000;
const NATIVE = "tamis";

export async function edit(place, context, id) {
  const address = id === null ? null : `/v1/subscriptions/${encodeURIComponent(id)}`;
  const found = address ? await get(address) : null;
  const language = found?.language ?? NATIVE; // which an edit keeps
  const vocabulary = language === NATIVE ? await readVocabulary(context) : null;
  const name = el("input", { value: found?.name ?? "", maxlength: "1000" });
  const lease = el("select", {}, [["3600", "an hour"], ["86400", "a day"], ["604800", "a week"], ["", "no end"]]
    .map(([value, text]) => el("option", { value, selected: value === "86400" }, text)));
  const url = el("input", { type: "url", value: found?.sink?.url ?? "", placeholder: "none: read by stream or poll" });
  const ownId = el("input", {});
  const save = el("button", { class: "main", disabled: true }, id === null ? "Subscribe" : "Save");
  const told = el("p", { role: "alert" });
  const tried = sheet("On past events", el("p", { class: "empty" }, "A valid condition is tried at once."));
  const test = backtest(tried, language);
  const editor = conditionEditor(vocabulary, {
    value: found?.condition ?? "", language,
    label: language === NATIVE ? "Condition" : `Condition, in the language ${language}`,
    changed(text, error) {
      save.disabled = error !== null;
      if (error === null) test.start(text);
      else test.wait(error === "empty" ? "A valid condition is tried at once." : "The condition has a mistake.");
    },
  });

  async function send(event) {
    event.preventDefault();
    save.disabled = true;
    fill(told);
    const sink = url.value ? { ...(found?.sink ?? {}), url: url.value } : null;
    try {
      if (address === null) {
        const given = { condition: editor.value(), lease: lease.value ? Number(lease.value) : null };
        if (name.value) given.name = name.value;
        if (sink) given.sink = sink;
        if (context.me.ids === "text") given.id = ownId.value;
        created(await post("/v1/subscriptions", given, { headers: { "Idempotency-Key": crypto.randomUUID?.() ?? String(Math.random()) } }));
        return;
      }
      const changes = {};
      if (editor.value() !== found.condition) changes.condition = editor.value();
      if ((name.value || null) !== found.name) changes.name = name.value || null;
      if ((url.value || null) !== (found.sink?.url ?? null)) changes.sink = sink;
      await patch(address, changes);
      context.go(`/console/subscriptions/${encodeURIComponent(id)}`);
    } catch (why) {
      save.disabled = false;
      fill(told, el("span", { class: "bad" }, why.message.split("\n")[0]));
    }
  }

  function created(made) {
    test.close();
    const link = `/console/subscriptions/${encodeURIComponent(made.id)}`;
    fill(place,
      heading(`Subscription ${made.id}`),
      el("div", { class: "note stack tight" },
        el("p", {}, "It is live, and on disk."),
        el("p", {}, "The ticket, shown only here. Whoever has it may renew, change and cancel it: "),
        el("code", {}, made.ticket),
        made.secret ? [el("p", {}, "The secret that signs the webhooks, shown only here:"), el("code", {}, made.secret)] : null),
      el("div", { class: "row" }, el("a", { class: "button main", href: link }, "Show the subscription"),
        el("a", { class: "button", href: `/console/live/${encodeURIComponent(made.id)}` }, "Follow it live")));
    place.querySelector("h1").focus();
  }

  fill(place,
    heading(id === null ? "New subscription" : `Edit subscription ${id}`),
    el("form", { class: "stack", onsubmit: send },
      el("div", { class: "sheet" }, editor.place,
        el("div", { class: "three" },
          context.me.ids === "text" && id === null ? field("Id", ownId) : null,
          field("Name", name), id === null ? field("Lease", lease) : null,
          field("Webhook", url)),
        el("div", { class: "row" }, save, el("a", { class: "button", href: id === null ? "/console/subscriptions" : `/console/subscriptions/${encodeURIComponent(id)}` }, "Back")),
        told),
      tried));
  return () => test.close();
}

function backtest(place, language) {
  let turn = 0, running = null;
  const title = el("h2", {}, "On past events");
  const said = (text, wrong = false) => fill(place, title, el("p", { class: wrong ? "bad" : "empty" }, text));

  const run = later(0.5, async (text) => {
    const mine = (turn += 1);
    stop();
    try {
      const { end } = await get("/console/api/position");
      let found = await post("/v1/backtest", { condition: text, language, first: Math.max(0, end - EVENTS), end, buckets: 60 });
      while (found.matched === null || found.matched === undefined) {
        running = found.id;
        if (mine !== turn) { stop(); return; }
        said(`Trying it on past events: ${Math.round(found.progress * 100)} %`);
        await new Promise((resolve) => { setTimeout(resolve, 700); });
        found = await get(`/v1/backtest/${found.id}`);
      }
      running = null;
      if (mine === turn) show(found);
    } catch (why) {
      if (mine === turn) said(why.status === 403 ? "Back-tests need a key with the role reader." : why.message.split("\n")[0], why.status !== 403);
    }
  });

  function stop() {
    if (running) remove(`/v1/backtest/${running}`).catch(() => {});
    running = null;
  }

  function show(found) {
    const text = found.events
      ? `Would have matched ${count(found.matched)} of the last ${count(found.events)} events`
      : "There are no events yet to try it on.";
    announce(text);
    fill(place, title, el("p", { class: "result" }, text, found.events
      ? el("span", { class: "quiet" }, ` (${figure(found.matched / found.events * 100)} %)`) : null),
    found.samples?.length ? el("ol", { class: "list", "aria-label": "Samples" }, found.samples.map((each) =>
      el("li", {}, el("div", { class: "quiet fine" }, `event ${count(each.sequence)}`),
        each.event ? json(each.event.slice(0, 2000)) : "not kept any longer"))) : null);
  }

  return {
    start: run,
    wait(text) { turn += 1; run.stop(); stop(); said(text); },
    close() { turn += 1; run.stop(); stop(); },
  };
}
