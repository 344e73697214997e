// Keyboard, copy buttons, dialogs. Pages work without this file.
(function () {
  "use strict";
  const base = document.body.dataset.base;
  const help = document.getElementById("help");

  function toggleTheme() { document.dispatchEvent(new Event("theme-wanted")); }
  document.getElementById("theme").addEventListener("click", toggleTheme);
  document.getElementById("keys").addEventListener("click", () => help.showModal());

  // On a phone the pages are in a row that scrolls.
  document.querySelector(".side [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });

  document.addEventListener("click", async (event) => {
    const button = event.target.closest(".copy");
    if (button) {
      await copy(button.dataset.copy);
      button.classList.add("done");
      setTimeout(() => button.classList.remove("done"), 1200);
    }
    // One open question at a time.
    for (const open of document.querySelectorAll("details.sure[open]")) {
      if (!open.contains(event.target)) open.open = false;
    }
  });

  // What does not fit is told by a tooltip.
  document.addEventListener("mouseover", (event) => {
    const cell = event.target.closest(".cut");
    if (cell && !cell.title) cell.title = cell.textContent.trim();
  });

  async function copy(text) {
    if (navigator.clipboard && window.isSecureContext) return navigator.clipboard.writeText(text);
    // Browsers give the clipboard to encrypted pages only; a selection works everywhere.
    const field = document.createElement("textarea");
    field.value = text;
    document.body.append(field);
    field.select();
    document.execCommand("copy");
    field.remove();
  }

  // A list that is drawn anew would close the question that somebody reads, or vanish with an ended login.
  document.body.addEventListener("htmx:beforeRequest", (event) => {
    if (document.querySelector("details.sure[open]")) event.preventDefault();
  });
  document.body.addEventListener("htmx:beforeSwap", (event) => {
    if (!event.detail.serverResponse.includes(`id="${event.detail.target.id}"`)) event.detail.shouldSwap = false;
  });

  let before = "";
  const pages = new Map([...document.querySelectorAll(".side nav a")].map((link) => [link.dataset.key, link]));

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || help.open) return;
    if (event.target.matches("input, select, textarea")) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    const key = event.key;
    if (before === "g" && pages.has(key)) location.assign(pages.get(key).href);
    else if (key === "/") focusFilter(event);
    else if (key === "?") help.showModal();
    else if (key === "l") toggleTheme();
    else if (key === "n") document.querySelector(".pager [rel=next]")?.click();
    else if (key === "j") move(1);
    else if (key === "k") move(-1);
    else if (key === "Enter") openRow(event);
    before = key;
  });

  function focusFilter(event) {
    const field = document.querySelector(".filter input");
    if (!field) return;
    event.preventDefault();
    field.focus();
    field.select();
  }

  function move(by) {
    const rows = [...document.querySelectorAll(".rows tbody tr:not(.error)")];
    if (!rows.length) return;
    const at = rows.findIndex((row) => row.classList.contains("at"));
    const next = rows[Math.min(rows.length - 1, Math.max(0, at === -1 ? 0 : at + by))];
    rows[at]?.classList.remove("at");
    next.classList.add("at");
    next.scrollIntoView({ block: "nearest" });
  }

  function openRow(event) {
    const link = document.querySelector(".rows tr.at a.id");
    if (!link || event.target.closest("a, button, summary")) return;
    event.preventDefault();
    link.click();
  }
})();
