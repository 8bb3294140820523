"use strict";
// Times in the reader's time zone, running counters, copy buttons. Everything else is rendered by the server; pages can
// be read without this script. Functions with a `root` also prepare fragments before they are shown.
(() => {
  const exact = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

  const toTheMinute = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });

  const timeOfDay = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });

  const minuteOfDay = new Intl.DateTimeFormat(undefined, { timeStyle: "short" });

  function duration(ms) {
    const seconds = Math.max(0, Math.floor(ms / 1000));
    if (seconds < 60) return `${seconds} s`;
    const two = (number) => String(number).padStart(2, "0");
    const hours = Math.floor(seconds / 3600), minutes = Math.floor(seconds / 60) % 60, rest = two(seconds % 60);
    return hours ? `${hours}:${two(minutes)}:${rest}` : `${minutes}:${rest}`;
  }

  let live = null, wall = null, isSending = false, isTyped = false;

  function prepare(root) {
    for (const time of root.querySelectorAll("time.local:not([data-done])")) {
      time.textContent = (time.matches(".short") ? toTheMinute : exact).format(new Date(time.dateTime));
      time.dataset.done = "1";
    }
    for (const time of root.querySelectorAll("time.clock:not([data-done])")) {
      time.textContent = (time.matches(".short") ? minuteOfDay : timeOfDay).format(new Date(time.dateTime));
      time.dataset.done = "1";
    }
    for (const control of root.querySelectorAll("[data-copy][hidden], [data-filter][hidden]")) control.hidden = false;
  }

  function openNext() {
    const next = document.querySelector("[data-open]");
    // Not reload(), because the page may be the response to a form. Not while a form is sent: users wait for it.
    if (next && !isSending) location.replace(next.dataset.open);
  }

  // Texts are compared first, because setting a text would clear the user's selection.
  function show(element, text) { if (element.textContent !== text) element.textContent = text; }

  function run(root) {
    const now = live.now();
    for (const counter of root.querySelectorAll("time[data-since]")) show(counter, duration(now - counter.dataset.since));
    for (const form of root.querySelectorAll("form.undo")) if (form.dataset.until <= now) form.remove();
    for (const counter of root.querySelectorAll("time[data-until]")) show(counter, duration(counter.dataset.until - now));
  }

  function feedFilter(root) {
    if (!document.querySelector("[data-kind-filter]")) return;
    const shown = new Set([...document.querySelectorAll("[data-kind-filter]:checked")].map((box) => box.dataset.kindFilter));
    for (const item of root.querySelectorAll("[data-kind]")) item.hidden = !shown.has(item.dataset.kind);
  }

  function shortenLists() {
    for (const list of document.querySelectorAll("ol.feed")) {
      while (list.children.length > 300) list.lastElementChild.remove();  // the same maximum as on the server
    }
  }

  // Parts of a form that belong to a choice are shown only if it is selected.
  function formParts(root) {
    for (const part of root.querySelectorAll("[data-shown-by]")) {
      const field = document.getElementById(part.dataset.shownBy) ?? root.getElementById(part.dataset.shownBy);
      part.hidden = !part.dataset.shownFor.split(" ").includes(field.value);
    }
  }

  function dress(root) { prepare(root); formParts(root); run(root); feedFilter(root); wall?.dress(root); }

  function updated() { openNext(); shortenLists(); wall?.updated(); }

  // A confirmation gets the focus when it opens; Escape closes it and returns the focus.
  function confirmations() {
    document.addEventListener("toggle", ({ target }) => {
      if (target.open && target.matches("details.action")) target.querySelector("form, [role=group]").focus();
    }, true);
    document.addEventListener("keydown", (event) => {
      const opened = event.key === "Escape" && document.querySelector("details.action[open]");
      if (!opened) return;
      opened.open = false;
      opened.querySelector("summary").focus();
    });
  }

  document.addEventListener("DOMContentLoaded", () => {
    const isInUse = () => isSending || isTyped || document.querySelector(".secret, .notice [data-copy]");  // shown once
    live = new LivePage({ prepare: dress, updated, isInUse });
    if (typeof WallPage !== "undefined") wall = new WallPage();
    dress(document);
    updated();
    confirmations();
    setInterval(() => run(document), 1000);
    document.addEventListener("submit", () => { isSending = true; });
    document.addEventListener("input", (event) => {
      if (event.target.form?.method === "post") isTyped = true;
    });
    document.addEventListener("change", (event) => { if (event.target.matches("select")) formParts(document); });
    document.addEventListener("change", (event) => { if (event.target.matches("[data-kind-filter]")) feedFilter(document); });
    document.addEventListener("click", async (event) => {
      const button = event.target.closest("[data-copy]");
      if (!button) return;
      try {
        await navigator.clipboard.writeText(button.dataset.copy);
        button.textContent = "Copied";
      } catch {
        button.textContent = "Select the text to copy it";
      }
      setTimeout(() => { button.textContent = "Copy"; }, 2000);
    });
  });
})();
