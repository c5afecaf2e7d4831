// Runs before anything is shown, so that a page does not flash in the other colours.
"use strict";
(() => {
  const chosen = localStorage.getItem("tamis-theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();
