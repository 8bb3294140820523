"use strict";
// Shortcut keys for the search and the items of a page, days in the reader's time zone, and multiple selection in
// lists. Without this script, the Tab key, days in UTC and single checkboxes still work.
(() => {
  const isOn = () => localStorage.getItem("keys") !== "off";
  const shownItems = () => [...document.querySelectorAll("[data-item], .match h3 a, .named > a")].filter((one) => one.getClientRects().length);

  function toSearch() {
    const field = document.querySelector("main input[type=search]");
    if (field) { field.focus(); field.select(); }
    else if (document.querySelector("nav a[href='/console/matches']")) location.assign("/console/matches#f-search");
  }

  function move(event) {
    const from = event.target, items = shownItems(), at = items.indexOf(from), step = event.key === "ArrowDown" ? 1 : -1;
    const begins = from === document.body || from.id === "main" || from.matches("input[type=search]");
    if (!items.length || (at < 0 && !(begins && step > 0))) return;
    const next = items[at + step];
    if (next) next.focus();
    else if (step < 0) toSearch();
    event.preventDefault();
  }

  function onKey(event) {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") return move(event);
    if (!isOn() || event.target.closest("input:not([type=checkbox]), textarea, select, dialog")) return;
    if (event.key === "/") { toSearch(); event.preventDefault(); }
    if (event.key === "?") document.getElementById("keyboard")?.showModal();
  }

  function keys() {
    const dialog = document.getElementById("keyboard"), box = document.getElementById("keyboard-on");
    if (!dialog) return;
    for (const button of document.querySelectorAll("[data-keys]")) {
      button.hidden = false;
      button.addEventListener("click", () => dialog.showModal());
    }
    dialog.querySelector("[data-close]").addEventListener("click", () => dialog.close());
    box.checked = isOn();
    box.addEventListener("change", () => localStorage.setItem("keys", box.checked ? "on" : "off"));
    document.addEventListener("keydown", onKey);
    if (location.hash === "#f-search") toSearch();
  }

  // --- days: the URL has times in UTC, users choose days in their time zone ---

  const isEnd = (field) => field.name === "dateTo" || field.name === "until";
  const two = (number) => String(number).padStart(2, "0");

  function toTime(day, field) {
    const [year, month, date] = day.split("-").map(Number);
    return new Date(isEnd(field) ? new Date(year, month - 1, date + 1) - 1 : new Date(year, month - 1, date)).toISOString();
  }

  function showDay(field) {
    if (/^\d{4}-\d{2}-\d{2}$/.test(field.value)) {  // from a link: a day in UTC
      if (!new Date().getTimezoneOffset()) return;
      const time = `${field.value}T${isEnd(field) ? "23:59:59.999" : "00:00:00.000"}Z`;
      field.type = "text";
      field.value = time;
    }
    const at = new Date(field.value);
    if (!field.value || Number.isNaN(at.valueOf())) return;
    const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
    if (toTime(day, field) !== at.toISOString()) return;
    field.value = "";  // a time is not a valid value of a date field
    field.type = "date";
    field.value = day;
  }

  function days() {
    const fields = [...document.querySelectorAll("input[data-day]")];
    fields.forEach(showDay);
    for (const form of new Set(fields.map((field) => field.form))) {
      form.addEventListener("formdata", ({ formData }) => {
        for (const field of fields) if (field.form === form && field.type === "date" && field.value) formData.set(field.name, toTime(field.value, field));
      });
    }
    const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
    for (const one of document.querySelectorAll("[data-zone]")) one.textContent = `your time zone, ${zone}`;
  }

  // --- selections ---

  function selections() {
    const all = document.querySelector("[data-select-all]"), form = document.getElementById("selection");
    if (!all || !form) return;
    const boxes = [...form.elements].filter((one) => one.type === "checkbox");
    const update = () => {
      const count = boxes.filter((box) => box.checked).length;
      all.checked = count === boxes.length;
      all.indeterminate = count > 0 && !all.checked;
      for (const one of form.querySelectorAll("[data-selected]")) one.textContent = count === 1 ? "1 selected match" : `${count} selected matches`;
      for (const button of form.querySelectorAll("button")) button.disabled = !count;
    };
    all.hidden = false;
    all.addEventListener("change", () => { for (const box of boxes) box.checked = all.checked; update(); });
    document.addEventListener("change", (event) => { if (boxes.includes(event.target)) update(); });
    addEventListener("pageshow", update);  // after going back, browsers restore checked boxes
    update();
  }

  document.addEventListener("DOMContentLoaded", () => { keys(); days(); selections(); });
})();
