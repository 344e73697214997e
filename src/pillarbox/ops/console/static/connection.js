// Shows a banner if the console or the store is unavailable, and since when the numbers are outdated.
(function () {
  "use strict";
  const banner = document.getElementById("lost");
  const soon = 4000; // Milliseconds. A stream ends once a minute and reconnects within one second.
  const late = 20000; // Without a failure: longer than a slow store delays a page.
  let heard = Date.now();
  let answered = heard;
  let failed = false;

  document.addEventListener("live:statistics", () => { heard = Date.now(); reached(""); });
  document.addEventListener("live:no-store", () => reached("Store unavailable"));
  document.addEventListener("live:no-answer", () => { failed = true; });
  document.addEventListener("visibilitychange", () => { answered = Date.now(); });
  document.body.addEventListener("htmx:afterRequest", (event) => {
    const status = event.detail.xhr.status;
    const kind = event.detail.successful ? "statistics" : status >= 500 ? "no-store" : "no-answer";
    document.dispatchEvent(new Event(`live:${kind}`));
  });
  if (document.querySelector("[data-live-url], [hx-trigger]")) setInterval(watch, 1000);

  function reached(trouble) {
    answered = Date.now();
    failed = false;
    tell(trouble);
  }

  // Browsers slow down the timers of a hidden page.
  function watch() {
    if (!document.hidden && Date.now() - answered > (failed ? soon : late)) tell("No connection to the console");
  }

  function tell(trouble) {
    const since = new Date(heard).toTimeString().slice(0, 8);
    const said = trouble && `${trouble} since ${since}; the numbers are outdated.`;
    if (banner.textContent !== said) banner.textContent = said;
    banner.hidden = !trouble;
    document.body.classList.toggle("old", trouble !== "");
  }
})();
