// Live numbers by Server-Sent Events, with polling as a fallback; and the charts.
(function () {
  "use strict";
  const place = document.querySelector("[data-live-url]");
  if (place) follow(place.dataset.liveUrl, place.dataset.pollUrl);
  const charts = document.querySelector("[data-course]");
  if (charts && window.uPlot) draw(charts);

  function follow(url, pollUrl) {
    let failures = 0;
    const source = new EventSource(url);
    source.addEventListener("message", (event) => { failures = 0; show(JSON.parse(event.data)); });
    source.addEventListener("error", () => {
      failures += 1;
      tell("no-answer");
      if (failures < 3 && source.readyState !== EventSource.CLOSED) return;
      source.close();
      setInterval(() => poll(pollUrl), 2000);
    });
    addEventListener("pagehide", () => source.close());
  }

  async function poll(url) {
    try {
      const answer = await fetch(url);
      if (answer.ok) show(await answer.json());
      else if (answer.status === 401) location.reload();
      else show({ state: "unknown", summary: (await answer.json()).error });
    } catch { tell("no-answer"); }
  }

  function tell(kind) { document.dispatchEvent(new Event(`live:${kind}`)); }

  function show(statistics) {
    for (const [name, text] of Object.entries(statistics)) {
      for (const element of document.querySelectorAll(`[data-live="${name}"]`)) {
        write(element, text);
      }
    }
    const health = document.querySelector("[data-live-state]");
    if (health && statistics.state) health.dataset.state = statistics.state;
    tell(statistics.state === "unknown" ? "no-store" : "statistics");
    if (statistics.dead_letters) document.querySelector("[data-live=dead_letters]").closest(".tile").classList.toggle("has-dead", statistics.dead_letters !== "0");
    const oldest = document.querySelector("[data-live-level]");
    if (oldest && statistics.oldest_level) oldest.dataset.level = statistics.oldest_level;
  }

  // Text between backticks is a command, as in the templates.
  function write(element, text) {
    const pieces = text.split("`");
    if (element.textContent === pieces.join("")) return;
    element.replaceChildren(...pieces.map((piece, at) => {
      if (at % 2 === 0) return piece;
      const command = document.createElement("code");
      command.textContent = piece;
      return command;
    }));
  }

  function draw(charts) {
    const rate = document.getElementById("chart-rate");
    const lag = document.getElementById("chart-lag");
    let plots = [];
    let course = null;

    async function refresh() {
      try {
        const answer = await fetch(charts.dataset.course);
        if (!answer.ok) return;
        course = await answer.json();
      } catch { return; }
      const measured = [...course.recorded, ...course.published].some((value) => value !== null);
      charts.classList.toggle("none", !measured);
      charts.querySelector(".no-course").hidden = measured;
      if (measured) paint();
    }

    function data() {
      return [
        [course.times, course.recorded, course.published],
        [course.times, course.p50, course.p95, course.p99],
      ];
    }

    function paint() {
      if (plots.length) {
        data().forEach((each, at) => plots[at].setData(each));
        plots.forEach(latest);
        return;
      }
      plots = [
        plot(rate, ["recorded/s", "published/s"], data()[0], { values: perSecond, axis: perSecond, size: 56 }),
        plot(lag, ["p50", "p95", "p99"], data()[1], { values: span, axis: span, size: 64, log: true }),
      ];
      plots.forEach(latest);
    }

    // Without a cursor the legend shows the last measured point.
    function latest(self) {
      if (self.cursor.idx !== null && self.cursor.idx !== undefined) return;
      const [times, ...series] = self.data;
      let at = times.length - 1;
      while (at > 0 && series.every((values) => values[at] === null)) at -= 1;
      self.setLegend({ idx: at });
    }

    function repaint() {
      for (const each of plots) each.destroy();
      plots = [];
      if (course) paint();
    }

    function plot(into, names, values, how) {
      const style = getComputedStyle(document.documentElement);
      const colour = (name) => style.getPropertyValue(name).trim();
      const grid = { stroke: colour("--line"), width: 1 };
      const axis = { stroke: colour("--muted"), grid, ticks: grid, font: "12px system-ui, sans-serif" };
      return new uPlot({
        width: into.clientWidth,
        height: 210,
        legend: { live: true, markers: { fill: (self, at) => colour(`--series-${at}`) } },
        cursor: { points: { size: 6 } },
        hooks: { setCursor: [latest] },
        scales: { y: how.log ? { distr: 3 } : { range: (self, low, high) => [0, Math.max(1, (high || 0) * 1.1)] } },
        axes: [{ ...axis, size: 30, values: (self, ticks) => ticks.map(clock) }, { ...axis, size: how.size, values: (self, ticks) => ticks.map((tick) => (tick === null ? "" : how.axis(tick))) }],
        series: [
          {},
          ...names.map((name, at) => ({
            label: name,
            stroke: colour(`--series-${at + 1}`),
            width: 2,
            spanGaps: false,
            points: { show: true, size: 5, filter: alone },
            value: (self, value) => (value === null || value === undefined ? "–" : how.values(value)),
          })),
        ],
      }, values, into);
    }

    // A line needs two points: draw an isolated value as a point.
    function alone(self, series) {
      const values = self.data[series];
      const measured = (at) => values[at] !== null && values[at] !== undefined;
      return values.map((value, at) => at).filter((at) => measured(at) && !measured(at - 1) && !measured(at + 1));
    }

    function clock(at) {
      const moment = new Date(at * 1000);
      return `${String(moment.getHours()).padStart(2, "0")}:${String(moment.getMinutes()).padStart(2, "0")}`;
    }

    function perSecond(value) {
      if (value >= 1e6) return `${(value / 1e6).toFixed(1)}M`;
      if (value >= 1e4) return `${(value / 1e3).toFixed(0)}k`;
      return value < 10 && value % 1 ? value.toFixed(1) : value.toFixed(0);
    }

    function span(seconds) {
      if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
      if (seconds < 120) return `${Number(seconds.toFixed(1))} s`;
      return `${Math.round(seconds / 60)} min`;
    }

    let width = rate.clientWidth;
    addEventListener("resize", () => {
      if (rate.clientWidth !== width) { width = rate.clientWidth; repaint(); }
    });
    document.addEventListener("themed", repaint);
    refresh();
    setInterval(refresh, 10000);
  }
})();
