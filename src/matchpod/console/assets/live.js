"use strict";
// Keeps a page up to date: follows its stream while the page is visible, shows when the connection is lost, keeps the
// time of the service, and redirects to the log-in when the session has ended. Among hidden pages with alarms, one page
// keeps following its stream.

const REPEAT_MS = 10_000;
const WORKER_SILENT_MS = 20_000;  // longer than the stream's own timeouts
const ALARMS_MS = 1_000;          // after this time, another tab has taken over the alarms

class LivePage {
  constructor({ prepare, updated, isInUse }) {
    this.prepare = prepare;
    this.updated = updated;
    this.isInUse = isInUse;
    const shown = document.querySelector("[data-follow]"), session = document.body.dataset.session;
    this.isOverlay = Boolean(shown?.dataset.stream);
    this.name = shown?.dataset.follow ?? "";
    this.position = shown?.dataset.position ?? "";
    this.hasAlarms = shown?.dataset.alarms !== undefined;
    this.address = this.isOverlay ? `${shown.dataset.stream}?` : `/console/stream?session=${session}&`;
    this.offsetMs = Number(document.documentElement.dataset.now) - Date.now();
    this.updatedMs = this.now();
    this.formatter = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });
    if (!this.isOverlay && !session) return;
    document.addEventListener("visibilitychange", () => this.visibilityChanged());
    addEventListener("pagehide", () => this.leave());
    addEventListener("pageshow", (event) => { if (event.persisted) this.visibilityChanged(); });
    setInterval(() => this.check(), 1000);
    this.visibilityChanged();
  }

  now() { return Date.now() + this.offsetMs; }

  visibilityChanged() {
    if (document.visibilityState === "hidden") {
      if (this.hasAlarms) this.keepAlarms();
      else this.leave();
      return;
    }
    this.waiting?.abort();
    this.endAlarms?.();
    this.waiting = this.endAlarms = null;
    if (!this.isFollowing) this.follow();
  }

  // Of all hidden tabs with alarms, only the holder of the lock follows. If it is shown or closed, another takes over.
  keepAlarms() {
    if (this.waiting) return;
    if (!navigator.locks) {  // locks need TLS
      if (!this.connected().isShared) this.leave();
      return;
    }
    const { signal } = this.waiting = new AbortController();
    const late = setTimeout(() => this.leave(), ALARMS_MS);
    signal.addEventListener("abort", () => clearTimeout(late));
    navigator.locks.request("matchpod-alarms", { signal }, () => {
      clearTimeout(late);
      if (!this.isFollowing) this.follow();
      return new Promise((end) => { this.endAlarms = end; });
    }).catch(() => {});  // aborted, because the page is shown again
  }

  connected() {
    return this.link ??= connectTab(STREAM_SCRIPT, (message) => this.receive(message), { isShared: !this.isOverlay });
  }

  follow() {
    this.isFollowing = true;
    this.heardAt = performance.now();
    this.repeat();
  }

  repeat() {
    this.saidAt = performance.now();
    this.connected().send({ address: this.address, name: this.name, position: this.position });
  }

  leave() {
    if (!this.isFollowing) return;
    this.isFollowing = false;
    this.connected().send({ address: this.address, isLeaving: true });
  }

  check() {
    if (!this.isFollowing) return;
    this.repeatIfDue();
    if (performance.now() - this.heardAt > WORKER_SILENT_MS) {
      this.showLost();
      this.leave();
      this.link = null;  // the worker may have crashed
      this.follow();
    }
  }

  repeatIfDue() { if (performance.now() - this.saidAt > REPEAT_MS) this.repeat(); }

  receive(message) {
    if (message.kind === "alone") this.visibilityChanged();
    if (!this.isFollowing) return;
    this.heardAt = performance.now();
    this.repeatIfDue();  // timers of hidden pages run once per minute
    if (message.kind === "lost") this.showLost();
    else if (message.kind === "ended") this.sessionEnded();
    else if (message.kind === "gone") setTimeout(() => location.reload(), 1000);
    else if (message.kind === "changes") {
      this.position = message.position;
      applyFragments(message.html, this.prepare);
      this.updated();
    } else {
      const offsetMs = message.ms - Date.now();
      if (Math.abs(offsetMs - this.offsetMs) > 300) this.offsetMs = offsetMs;  // smaller differences are network delay
      this.updatedMs = this.now();
      this.say("");
    }
  }

  showLost() {
    if (this.isOverlay) this.say("no data");
    else if (this.name) {
      const last = this.formatter.format(new Date(this.updatedMs));
      this.say(`This page is not being updated. The last update was at ${last}. Trying to connect again …`);
    }
  }

  say(text) {
    const banner = document.getElementById("connection");
    if (banner.textContent !== text) banner.textContent = text;
  }

  sessionEnded() {
    this.leave();
    if (this.isOverlay) return;
    const [kind, id] = this.name.split("/");  // the page's URL may be the URL of the last form
    const path = kind === "match" ? `/console/matches/${id}` : location.pathname;
    const login = `/console/login?next=${encodeURIComponent(path + location.search)}`;
    if (!this.isInUse()) {
      location.replace(login);
      return;
    }
    this.say("You are logged out. This page stays as it is. ");
    const link = document.createElement("a");
    link.href = login;
    link.target = "_blank";
    link.textContent = "Log in again in another tab";
    document.getElementById("connection").append(link);
  }
}
