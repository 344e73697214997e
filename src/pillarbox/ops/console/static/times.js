// Times in the time zone of the browser, with UTC in the tooltip. Without JavaScript pages show UTC.
(function () {
  "use strict";
  const two = (number) => String(number).padStart(2, "0");

  function local(at) {
    const day = [at.getFullYear(), two(at.getMonth() + 1), two(at.getDate())].join("-");
    return [day, `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}.${String(at.getMilliseconds()).padStart(3, "0")}`];
  }

  function show(within) {
    for (const time of within.querySelectorAll("time.stamp:not([data-local])")) {
      const at = new Date(time.dateTime);
      if (Number.isNaN(at.getTime())) continue;
      const [day, clock] = local(at);
      time.replaceChildren(day, " ", document.createElement("wbr"), clock);
      time.title = `${time.dateTime} (UTC)`;
      time.dataset.local = "";
    }
    for (const zone of within.querySelectorAll(".utc")) zone.hidden = true;
  }

  show(document);
  document.body.addEventListener("htmx:afterSettle", () => show(document));
})();
