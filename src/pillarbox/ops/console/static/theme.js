// Sets light or dark before the first paint: the choice of the user, otherwise that of the system.
(function () {
  "use strict";
  const system = matchMedia("(prefers-color-scheme: dark)");
  function chosen() {
    try { return localStorage.getItem("pillarbox-theme"); } catch { return null; }
  }
  function apply() {
    document.documentElement.dataset.theme = chosen() || (system.matches ? "dark" : "light");
    document.dispatchEvent(new Event("themed"));
  }
  system.addEventListener("change", apply);
  document.addEventListener("theme-wanted", function () {
    const next = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    try { localStorage.setItem("pillarbox-theme", next); } catch { /* the choice lasts for this page only */ }
    document.documentElement.dataset.theme = next;
    document.dispatchEvent(new Event("themed"));
  });
  apply();
})();
