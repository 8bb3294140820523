"use strict";
// Times in the reader's time zone, counters that run, copy buttons, search on the page, alarms in title and sound.
// Everything else is done by the server; pages can be read without this file. Functions with a `root` also prepare fragments before they are shown.
(() => {
  const exact = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

  const timeOfDay = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });

  const minuteOfDay = new Intl.DateTimeFormat(undefined, { timeStyle: "short" });

  function duration(ms) {
    const seconds = Math.max(0, Math.floor(ms / 1000));
    if (seconds < 60) return `${seconds} s`;
    const two = (number) => String(number).padStart(2, "0");
    const hours = Math.floor(seconds / 3600), minutes = Math.floor(seconds / 60) % 60, rest = two(seconds % 60);
    return hours ? `${hours}:${two(minutes)}:${rest}` : `${minutes}:${rest}`;
  }

  let live = null, isSending = false, isTyped = false;

  function prepare(root) {
    for (const time of root.querySelectorAll("time.local:not([data-done])")) {
      time.textContent = exact.format(new Date(time.dateTime));
      time.dataset.done = "1";
    }
    for (const time of root.querySelectorAll("time.clock:not([data-done])")) {
      time.textContent = (time.matches(".short") ? minuteOfDay : timeOfDay).format(new Date(time.dateTime));
      time.dataset.done = "1";
    }
    for (const control of root.querySelectorAll("[data-copy][hidden], [data-filter][hidden]")) control.hidden = false;
    const label = document.getElementById("sound-label");
    if (label) label.hidden = false;
  }

  function openNext() {
    const next = document.querySelector("[data-open]");
    // Not reload(): the page may be the answer to a form. Not while a form is sent: its answer is what people wait for.
    if (next && !isSending) location.replace(next.dataset.open);
  }

  // Texts are compared first: a selection ends where a text is set.
  function show(element, text) { if (element.textContent !== text) element.textContent = text; }

  function run(root) {
    const now = live.now();
    for (const counter of root.querySelectorAll("time[data-since]")) show(counter, duration(now - counter.dataset.since));
    for (const counter of root.querySelectorAll("time[data-until]")) show(counter, duration(counter.dataset.until - now));
  }

  // The search is kept in the address, so that a reload or a link shows the same.
  function keepSearch(field) {
    const address = new URL(location.href);
    if (field.value.trim()) address.searchParams.set(field.name, field.value);
    else address.searchParams.delete(field.name);
    history.replaceState(history.state, "", address);
  }

  function filter(root) {
    const field = document.querySelector("[data-filter]");
    if (!field) return;
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const one of root.querySelectorAll("[data-text]")) {
      const text = one.dataset.text.toLowerCase();
      one.hidden = !words.every((word) => text.includes(word));
    }
  }

  // Buttons for a whole group take those of its matches that the search shows, and say how many.
  function acknowledgeShown() {
    const isSearched = Boolean(document.querySelector("[data-filter]")?.value.trim());
    for (const form of document.querySelectorAll("form[data-every]")) {
      const isShown = (id) => document.getElementById(`card-${id}`)?.hidden === false;
      const shown = form.dataset.every.split(" ").filter(isShown), button = form.querySelector("button");
      form.elements.servers.value = shown.join(" ");
      form.hidden = !shown.length;
      show(button, isSearched ? `Acknowledge ${shown.length} shown` : `Acknowledge all ${shown.length}`);
      button.setAttribute("aria-label", `${button.textContent} that are ${form.dataset.name}`);
    }
    const older = document.getElementById("older");
    if (older) older.hidden = isSearched;  // they are not searched
  }

  const title = document.title;
  let known = null;

  function alarm() {
    const mark = document.querySelector("[data-attention]");
    if (!mark) return;
    const count = Number(mark.dataset.attention);
    document.title = count ? `(${count}) ${title}` : title;
    const reasons = [...document.querySelectorAll("[data-reason]")];
    const added = known && reasons.filter((reason) => !known.has(reason.dataset.reason));
    if (added?.length) {
      const names = added.map((reason) => (reason.closest("article") ?? reason).querySelector("a").textContent);
      document.getElementById("announcement").textContent = `${mark.textContent}: ${names.slice(0, 3).join(", ")}`;
      beep();
    }
    known = new Set(reasons.map((reason) => reason.dataset.reason));
  }

  // Browsers allow sound only after a click or a key on the page: until then a remembered wish is said to be waiting.
  let audio = null;

  function allowSound() {
    const isWanted = document.getElementById("sound").checked, hint = document.getElementById("sound-hint");
    hint.hidden = true;
    if (!isWanted) return;
    audio ??= new AudioContext();
    setTimeout(() => { hint.hidden = audio.isAllowed || !document.getElementById("sound").checked; }, 500);
    audio.resume().then(() => {
      audio.isAllowed = true;
      hint.hidden = true;
      audio.suspend();  // it costs CPU time while it runs
    });
  }

  async function beep() {
    if (!audio?.isAllowed || !document.getElementById("sound").checked) return;
    await audio.resume();
    const tone = audio.createOscillator(), volume = audio.createGain();
    volume.gain.value = 0.1;
    tone.connect(volume).connect(audio.destination);
    tone.onended = () => audio.suspend();
    tone.start();
    tone.stop(audio.currentTime + 0.25);
  }

  function rememberSound() {
    const sound = document.getElementById("sound");
    if (!sound) return;
    sound.checked = localStorage.getItem("sound") === "on";
    allowSound();
    sound.addEventListener("change", () => {
      localStorage.setItem("sound", sound.checked ? "on" : "off");
      allowSound();
    });
    const use = () => { if (audio && !audio.isAllowed) audio.resume(); };
    for (const kind of ["pointerdown", "keydown"]) document.addEventListener(kind, use);
  }

  function feedFilter(root) {
    if (!document.querySelector("[data-kind-filter]")) return;
    const shown = new Set([...document.querySelectorAll("[data-kind-filter]:checked")].map((box) => box.dataset.kindFilter));
    for (const item of root.querySelectorAll("[data-kind]")) item.hidden = !shown.has(item.dataset.kind);
  }

  function shortenLists() {
    for (const list of document.querySelectorAll("ol.feed")) {
      while (list.children.length > 300) list.lastElementChild.remove();  // as many as the server sends
    }
  }

  // Parts of a form that belong to one choice are shown with it.
  function formParts(root) {
    for (const part of root.querySelectorAll("[data-shown-by]")) {
      const field = document.getElementById(part.dataset.shownBy) ?? root.getElementById(part.dataset.shownBy);
      part.hidden = !part.dataset.shownFor.split(" ").includes(field.value);
    }
  }

  function dress(root) { prepare(root); formParts(root); run(root); filter(root); feedFilter(root); }

  function updated() { openNext(); shortenLists(); acknowledgeShown(); alarm(); }

  // A confirmation gets the focus when it opens; Escape closes it and gives the focus back.
  function confirmations() {
    document.addEventListener("toggle", ({ target }) => {
      if (target.open && target.matches("details.action")) target.querySelector("form").focus();
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
    dress(document);
    updated();
    rememberSound();
    confirmations();
    setInterval(() => run(document), 1000);
    document.addEventListener("submit", () => { isSending = true; });
    document.addEventListener("input", (event) => {
      if (event.target.matches("[data-filter]")) {
        filter(document);
        acknowledgeShown();
        keepSearch(event.target);
      } else if (event.target.form?.method === "post") isTyped = true;
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
