// Keyboard, copy buttons, dialogs. Pages work without this file.
(function () {
  "use strict";
  const base = document.body.dataset.base;
  const help = document.getElementById("help");

  function toggleTheme() { document.dispatchEvent(new Event("theme-wanted")); }
  document.getElementById("theme").addEventListener("click", toggleTheme);
  document.getElementById("keyboard").addEventListener("click", () => help.showModal());

  // On a phone the navigation is a row that scrolls.
  document.querySelector(".side [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });

  document.addEventListener("click", async (event) => {
    const button = event.target.closest(".copy");
    if (button) {
      await copy(button.dataset.copy ?? document.getElementById(button.dataset.copyFrom).textContent);
      button.classList.add("done");
      setTimeout(() => button.classList.remove("done"), 1200);
    }
    // One open confirmation at a time.
    for (const open of document.querySelectorAll("details.sure[open]")) {
      if (!open.contains(event.target)) open.open = false;
    }
  });

  // A tooltip shows text that was cut off.
  document.addEventListener("mouseover", (event) => {
    const cell = event.target.closest(".cut");
    if (cell && !cell.title) cell.title = cell.textContent.trim();
  });

  async function copy(text) {
    if (navigator.clipboard && window.isSecureContext) return navigator.clipboard.writeText(text);
    // Browsers allow clipboard access on HTTPS pages only; a selection works everywhere.
    const field = document.createElement("textarea");
    field.value = text;
    document.body.append(field);
    field.select();
    document.execCommand("copy");
    field.remove();
  }

  // Skip a swap that would close an open confirmation, or replace the list by the login page of a proxy.
  let focused = null;
  document.body.addEventListener("htmx:beforeSwap", (event) => {
    const asked = document.querySelector("details.sure[open]");
    if (asked || !event.detail.serverResponse.includes(`id="${event.detail.target.id}"`)) event.detail.shouldSwap = false;
    focused = placeOf(document.activeElement);
  });
  // Keep the focus on the same element of the same row.
  document.body.addEventListener("htmx:afterSwap", () => {
    const within = document.getElementById(focused?.id);
    if (within && !within.contains(document.activeElement)) partsOf(within)[focused.at]?.focus({ preventScroll: true });
  });

  function placeOf(element) {
    const within = element.closest("[id]");
    return within && { id: within.id, at: partsOf(within).indexOf(element) };
  }

  function partsOf(within) { return [within, ...within.querySelectorAll("a, button, summary, input")]; }

  let before = "";
  const pages = new Map([...document.querySelectorAll(".side nav a")].map((link) => [link.dataset.key, link]));

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || help.open) return;
    const asked = document.querySelector("details.sure[open]");
    if (asked && event.key === "Escape") {
      asked.open = false;
      asked.querySelector("summary").focus();
      return;
    }
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
    const rows = [...document.querySelectorAll(".list tbody tr:not(.error)")];
    if (!rows.length) return;
    const at = rows.indexOf(document.activeElement.closest("tr"));
    const next = rows[Math.min(rows.length - 1, Math.max(0, at === -1 ? 0 : at + by))];
    next.tabIndex = -1;
    next.focus({ preventScroll: true });
    next.scrollIntoView({ block: "nearest" });
  }

  function openRow(event) {
    if (!event.target.matches("tr")) return;
    (event.target.querySelector("a.id") ?? event.target.querySelector("a"))?.click();
  }
})();
