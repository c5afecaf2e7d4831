// The console: who is signed in, the bar, and which page is shown.
import { get, post, whenSignedOut } from "./api.js";
import { el, fill, heading } from "./dom.js";
import { signIn } from "./pages/sign_in.js";

const PAGES = [
  // path, title, module, who may use it (undefined: everyone)
  ["live", "Live", "live"],
  ["map", "Map", "map", "publisher"],
  ["subscriptions", "Subscriptions", "subscriptions"],
  ["why", "Why", "why"],
  ["schema", "Schema", "schema"],
  ["delivery", "Delivery", "delivery"],
  ["matcher", "Matcher", "matcher", "admin"],
  ["health", "Health", "health", "admin"],
];
const main = document.getElementById("main");
const bar = document.getElementById("bar");
let me = null;
let leave = null;
let turn = 0;

// The map is for events with a position.
const there = (path) => path !== "map" || me.map;
const allowed = (role) => !role || me.roles.includes("admin") || me.roles.includes(role);

function showBar(current) {
  bar.hidden = false;
  fill(bar,
    el("a", { class: "brand", href: "/console/live" },
      el("img", { src: "/console/static/icon.svg", alt: "" }), "tamis"),
    el("nav", { "aria-label": "Pages" }, el("ul", {}, PAGES.filter(([path, , , role]) => there(path) && allowed(role))
      .map(([path, title]) => el("li", {}, el("a", { href: `/console/${path}`,
        "aria-current": path === current ? "page" : null }, title))))),
    el("div", { class: "foot" },
      el("div", { class: "who" }, el("strong", {}, me.name ?? "local operator"), el("br"),
        me.roles.join(", "), el("br"), `tamis ${me.version}`),
      el("div", { class: "row" },
        el("button", { class: "small", onclick: changeTheme, "aria-label": "Light or dark" }, themeName()),
        el("button", { class: "small", onclick: signOut }, "Sign out"))));
  bar.querySelector("[aria-current]")?.scrollIntoView({ inline: "center", block: "nearest" });
}

const dark = () => (document.documentElement.dataset.theme
  ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
const themeName = () => (dark() ? "Light" : "Dark");

function changeTheme(event) {
  const theme = dark() ? "light" : "dark";
  document.documentElement.dataset.theme = theme;
  localStorage.setItem("tamis-theme", theme);
  event.currentTarget.textContent = themeName();
  window.dispatchEvent(new Event("tamis-theme"));
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch { // a path that somebody has typed
    return part;
  }
}

async function signOut() {
  await post("/console/api/logout");
  me = null;
  show();
}

export function go(path, replace = false) {
  history[replace ? "replaceState" : "pushState"](null, "", path);
  return show();
}

async function show() {
  const mine = (turn += 1);
  leave?.();
  leave = null;
  if (me === null) {
    bar.hidden = true;
    document.title = "Sign in · tamis";
    signIn(main, (who) => { me = who; show(); });
    return;
  }
  const [name = "", ...rest] = location.pathname.replace(/^\/console\/?/, "").split("/")
    .filter(Boolean).map(decoded);
  const page = PAGES.find(([path]) => path === name);
  if (!page || !there(page[0]) || !allowed(page[3])) {
    go("/console/live", true);
    return;
  }
  const [path, title, module] = page;
  showBar(path);
  document.title = `${title} · tamis`;
  const place = el("div", { class: "stack" });
  fill(main, place);
  try {
    const found = await import(`./pages/${module}.js`);
    const ended = await found.show(place, { me, go, may: (role) => allowed(role) }, ...rest);
    if (mine === turn) leave = ended;
    else ended?.();
  } catch (why) {
    if (why.status !== 401) fill(place, heading(title), el("p", { class: "note wrong", role: "alert" }, why.message));
    if (!why.body && why.status === undefined) throw why;
  }
  place.querySelector("h1")?.focus({ preventScroll: true });
}

whenSignedOut(() => { if (me !== null) { me = null; show(); } });
window.addEventListener("popstate", () => { if (!location.hash) show(); }); // else a place in the page
document.addEventListener("click", (event) => {
  const link = event.target.closest?.("a[href^='/console/']");
  if (!link || event.defaultPrevented || event.metaKey || event.ctrlKey || event.shiftKey) return;
  event.preventDefault();
  window.scrollTo(0, 0);
  go(link.getAttribute("href"));
});

// A link that the service has printed has a code after the mark. It is not kept in the history.
// A page that is open takes one too.
const codeGiven = () => new URLSearchParams(location.hash.slice(1)).get("code");
async function enter() {
  const code = codeGiven();
  if (code) {
    history.replaceState(null, "", location.pathname);
    await post("/console/api/login", { key: code }).catch(() => {});
  }
  me = await get("/console/api/me").catch(() => null);
  show();
}
window.addEventListener("hashchange", () => { if (codeGiven()) enter(); });
enter();
