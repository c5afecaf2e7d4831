import { post } from "../api.js";
import { el, field, fill } from "../dom.js";

/** Ask for a key; `done` is told who has signed in. */
export function signIn(main, done) {
  const key = el("input", { type: "password", name: "key", autocomplete: "current-password",
    required: true, spellcheck: "false" });
  const wrong = el("p", { class: "bad", role: "alert" });
  async function send(event) {
    event.preventDefault();
    wrong.textContent = "";
    try {
      done(await post("/console/api/login", { key: key.value }));
    } catch (why) {
      wrong.textContent = why.message;
      key.select();
    }
  }
  fill(main, el("form", { class: "login stack", onsubmit: send },
    el("h1", { tabindex: "-1" }, "Sign in to tamis"),
    field("API key", key, ["Whoever runs the service makes keys: ",
      el("code", {}, "tamis keys create DATA --name NAME --role admin"),
      " A service without keys prints a link to this console when it starts."]),
    wrong,
    el("div", {}, el("button", { class: "main" }, "Sign in"))));
  key.focus();
}
