"use strict";
// The wall: filters and search (stored in the URL), full screen, and alarms for new attention. The server renders all
// matches of the wall; the script hides the matches that the filters exclude.

class WallPage {
  constructor() {
    this.title = document.title;
    this.known = null;
    this.alarms = new Alarms(() => this.alarm());
    document.addEventListener("input", ({ target }) => { if (target.matches("[data-filter]")) this.choose(target); });
    document.addEventListener("change", ({ target }) => { if (target.matches("[data-choice]")) this.choose(target); });
    document.addEventListener("click", (event) => this.clicked(event));
    document.addEventListener("submit", ({ target }) => this.keepPlace(target), true);
    document.addEventListener("fullscreenchange", () => { if (!document.fullscreenElement) this.set("screen", ""); });
    // For a page whose URL opened it without controls, and for browsers without full screen.
    document.addEventListener("keydown", ({ key }) => { if (key === "Escape") this.set("screen", ""); });
    addEventListener("popstate", () => this.showScreen());
    document.addEventListener("toggle", ({ target }) => this.rememberName(target), true);
    for (const control of document.querySelectorAll("[data-filter], [data-choice]")) {
      control.value = this.chosen(control.name);
    }
  }

  chosen(name) { return new URLSearchParams(location.search).get(name) ?? ""; }

  set(name, value) {
    const address = new URL(location.href);
    if (value) address.searchParams.set(name, value);
    else address.searchParams.delete(name);
    history.replaceState(history.state, "", address);
    if (name === "screen") this.showScreen();
    return address;
  }

  showScreen() {
    const isFull = this.chosen("screen") === "full";
    document.body.classList.toggle("full-screen", isFull);
    if (!isFull && document.fullscreenElement) document.exitFullscreen();
  }

  choose(control) {
    this.set(control.name, control.value.trim());
    this.filter(document);
    this.updated();
  }

  clicked(event) {
    const link = event.target.closest("[data-set], [data-filter-state]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    const { set, to, filterState } = link.dataset;
    if (set === "screen") {
      history.pushState(history.state, "", location.href);  // the back button ends full screen: phones have no Escape
      this.set(set, to);
      document.documentElement.requestFullscreen?.().catch(() => {});  // the controls are hidden anyway
    } else if (set) location.assign(this.set(set, to));
    else {
      this.set("state", this.chosen("state") === filterState ? "" : filterState);
      this.filter(document);
      this.updated();
    }
  }

  // A form redirects back to the wall with the same filters.
  keepPlace(form) {
    if (!form.closest(".acknowledge, .claim, .undo")) return;
    const back = form.elements.back ?? form.appendChild(Object.assign(document.createElement("input"), { type: "hidden" }));
    back.name = "back";
    back.value = location.search;
    if (form.elements.name) localStorage.setItem("name", form.elements.name.value);
  }

  rememberName(opened) {
    const name = opened.open && opened.querySelector?.("input[name=name]");
    if (name && !name.value) name.value = localStorage.getItem("name") ?? document.querySelector("[data-person]").dataset.person;
  }

  // Also prepares new fragments before they are shown.
  dress(root) { this.filter(root); }

  filter(root) {
    const state = this.chosen("state"), region = this.chosen("region"), label = this.chosen("label");
    const words = this.chosen("search").toLowerCase().split(/\s+/).filter(Boolean);
    for (const one of root.querySelectorAll("[data-text]")) {
      const { group, urgent, region: where, labels, text } = one.dataset, searched = text.toLowerCase();
      one.hidden = Boolean(state && (state === "urgent" ? urgent === undefined : state !== group))
        || Boolean(region && region !== where)
        || Boolean(label && !(labels && JSON.parse(labels).includes(label)))
        || !words.every((word) => searched.includes(word));
    }
    for (const link of root.querySelectorAll("[data-filter-state]")) {
      if (link.dataset.filterState === state) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
  }

  updated() {
    this.offerChoices();
    this.hideEmptyGroups();
    this.acknowledgeShown();
    this.alarm();
  }

  // The regions and labels of all matches on the wall.
  offerChoices() {
    for (const control of document.querySelectorAll("[data-choice]")) {
      const chosen = this.chosen(control.name), values = new Set(chosen ? [chosen] : []);
      for (const one of document.querySelectorAll("#cards > [data-text]")) {
        const value = one.dataset[control.dataset.choice];
        for (const each of control.name === "label" && value ? JSON.parse(value) : [value]) if (each) values.add(each);
      }
      const wanted = [...values].sort((one, other) => one.localeCompare(other, undefined, { numeric: true }));
      const offered = [...control.options].slice(1).map((option) => option.value);
      if (wanted.join("\n") !== offered.join("\n")) {
        control.replaceChildren(control.options[0], ...wanted.map((value) => new Option(value, value)));
        control.value = chosen;
      }
      control.hidden = wanted.length < 2 && !chosen;
    }
  }

  hideEmptyGroups() {
    let heading = null;
    for (const one of document.getElementById("cards").children) {
      if (one.dataset.text === undefined) {
        heading = one;
        heading.hidden = true;
      } else if (heading && !one.hidden) heading.hidden = false;
    }
  }

  // Buttons for all failed matches apply to the matches that the filters show, and contain their number.
  acknowledgeShown() {
    const isNarrowed = ["state", "region", "label", "search"].some((name) => this.chosen(name));
    for (const form of document.querySelectorAll("form[data-every]")) {
      const isShown = (id) => document.getElementById(`card-${id}`)?.hidden === false;
      const shown = form.dataset.every.split(" ").filter(isShown), button = form.querySelector("button");
      const text = isNarrowed ? `Acknowledge ${shown.length} shown` : `Acknowledge all ${shown.length}`;
      form.elements.servers.value = shown.join(" ");
      form.hidden = !shown.length;
      if (button.textContent !== text) button.textContent = text;
      button.setAttribute("aria-label", `${text} that ${form.dataset.name}`);
    }
    document.getElementById("older").hidden = isNarrowed;  // older matches are not searched
  }

  alarm() {
    const reasons = [...document.querySelectorAll("[data-reason]")].map((node) => {
      const row = node.closest("[data-text]"), [subject, kind] = node.dataset.reason.split(" ");
      const name = (row ?? node).querySelector("a").textContent;
      return { id: node.dataset.reason, subject, kind, name, text: node.textContent.trim().replace(/\s+/g, " "), isClaimed: row?.dataset.claimed !== undefined };
    });
    const heard = reasons.filter(({ kind }) => !this.alarms.isMuted(kind));
    const count = new Set(heard.filter((one) => !one.isClaimed).map((one) => one.subject)).size;
    document.title = count ? `(${count}) ${this.title}` : this.title;
    const added = this.known && heard.filter((one) => !this.known.has(one.id));
    if (added?.length) {
      const names = [...new Set(added.map((one) => one.name))].slice(0, 3).join(", ");
      const what = count === 1 ? "1 match or region needs" : `${count} matches or regions need`;
      document.getElementById("announcement").textContent = `${what} attention: ${names}`;
      this.alarms.raise(added);
    }
    this.known = new Set(reasons.map((one) => one.id));
  }
}

// Sound and notifications for new attention, and the muted reasons, stored per browser. Browsers allow sound only after
// a click or key press on the page. Until then, the page shows that the sound is waiting for one.
class Alarms {
  constructor(changed) {
    this.audio = null;
    document.getElementById("alarms").hidden = false;
    this.sound = document.getElementById("sound");
    this.notify = document.getElementById("notify");
    this.muted = new Set(JSON.parse(localStorage.getItem("muted") ?? "[]"));
    this.sound.checked = localStorage.getItem("sound") === "on";
    this.allowSound();
    this.sound.addEventListener("change", () => {
      localStorage.setItem("sound", this.sound.checked ? "on" : "off");
      this.allowSound();
    });
    this.showNotify(localStorage.getItem("notify") === "on");
    this.notify.addEventListener("change", () => this.allowNotify());
    for (const box of document.querySelectorAll("[data-mutes]")) {
      box.checked = this.muted.has(box.dataset.mutes);
      box.addEventListener("change", () => {
        if (box.checked) this.muted.add(box.dataset.mutes);
        else this.muted.delete(box.dataset.mutes);
        localStorage.setItem("muted", JSON.stringify([...this.muted]));
        changed();
      });
    }
    const use = () => { if (this.audio && !this.audio.isAllowed) this.audio.resume(); };
    for (const kind of ["pointerdown", "keydown"]) document.addEventListener(kind, use);
  }

  isMuted(kind) { return this.muted.has(kind); }

  raise(added) {
    this.beep();
    const isSeen = document.visibilityState === "visible" && document.hasFocus();
    if (isSeen || !this.notify.checked || Notification.permission !== "granted") return;
    const [first, ...others] = added;
    const body = `${first.text}${others.length ? `, and ${others.length} more` : ""}`;
    try {
      const shown = new Notification(`Matchpod: ${first.name}`, { body, tag: "matchpod", renotify: true });
      shown.onclick = () => window.focus();
    } catch {
      // Phones allow notifications only from service workers.
    }
  }

  // Notifications need a page over TLS.
  showNotify(isWanted) {
    const state = self.Notification ? Notification.permission : "impossible";
    const hint = document.getElementById("notify-hint");
    this.notify.disabled = state === "impossible" || state === "denied";
    this.notify.checked = isWanted && state === "granted";
    hint.hidden = !this.notify.disabled;
    hint.textContent = state === "denied" ? "(blocked in the settings of your browser)" : "(only over https)";
  }

  async allowNotify() {
    const isWanted = this.notify.checked;
    if (isWanted && Notification.permission === "default") await Notification.requestPermission();
    localStorage.setItem("notify", isWanted ? "on" : "off");
    this.showNotify(isWanted);
  }

  allowSound() {
    const hint = document.getElementById("sound-hint");
    hint.hidden = true;
    if (!this.sound.checked) return;
    this.audio ??= new AudioContext();
    setTimeout(() => { hint.hidden = this.audio.isAllowed || !this.sound.checked; }, 500);
    this.audio.resume().then(() => {
      this.audio.isAllowed = true;
      hint.hidden = true;
      this.audio.suspend();  // a running audio context costs CPU time
    });
  }

  async beep() {
    if (!this.audio?.isAllowed || !this.sound.checked) return;
    await this.audio.resume();
    const tone = this.audio.createOscillator(), volume = this.audio.createGain();
    volume.gain.value = 0.1;
    tone.connect(volume).connect(this.audio.destination);
    tone.onended = () => this.audio.suspend();
    tone.start();
    tone.stop(this.audio.currentTime + 0.25);
  }
}
