"use strict";
// One stream of updates for all tabs of a browser: browsers open six connections per host, and streams must leave them
// to links and forms. Tabs load this file, and also run it as a SharedWorker, which holds the stream. Without
// SharedWorkers, each visible tab holds a stream of its own.
//
// A tab reports what it shows: {address, name, position}, again every few seconds, or {address, isLeaving}. It receives
//   {kind: "changes", name, position, html}   fragments for its page
//   {kind: "time", ms}                        the time of the service, at first and every 5 s: the page is current
//   {kind: "lost"}                            the page is not updated: no connection, or a read error
//   {kind: "gone", name}                      the page no longer exists
//   {kind: "ended"}                           the session has ended
//   {kind: "alone"}                           the worker could not be loaded: this tab holds its own stream

const SILENT_MS = 15_000;      // time without an event after which the connection is dead
const OPENING_MS = 4_000;      // time without an answer after which the request is retried
const RETRYING_MS = 1_500;     // the same for further concurrent requests: some use dead connections
const ASLEEP_MS = 5_000;       // if a timer of one second takes this long, the machine was asleep
const MAX_REQUESTS = 4;        // concurrent requests while the connection is dead
const LONGEST_PAUSE_MS = 3_000;
const REJECTED_PAUSE_MS = 30_000;
const TAB_GONE_MS = 30_000;
const MAX_PAGES = 40;          // as the service allows

class UpdateStream {
  constructor(address, tell) {
    this.address = address;
    this.tell = tell;
    this.pages = new Map();
    this.requests = new Set();
    this.failures = 0;
    this.ticked = Date.now();
    this.timer = setInterval(() => this.check(), 1000);
  }

  open(pages) {
    this.pages = pages;
    this.connect();
  }

  close() {
    clearInterval(this.timer);
    this.giveUp();
  }

  connect() {
    this.giveUp();
    this.request();
  }

  giveUp(kept) {
    clearTimeout(this.retry);
    this.isOpen = Boolean(kept);
    this.heardAt = performance.now();
    for (const one of this.requests) if (one !== kept) this.abandon(one);
  }

  abandon(request) {
    this.requests.delete(request);
    request.abort();
  }

  async request() {
    const request = new AbortController();
    this.requests.add(request);
    const timer = setTimeout(() => this.unanswered(request), this.requests.size > 1 ? RETRYING_MS : OPENING_MS);
    const listed = [...this.pages].map(([name, position]) => `${name}:${position}`).join(",");
    let pauseMs = 0;
    try {
      const options = { signal: request.signal, cache: "no-store", headers: { Accept: "text/event-stream" } };
      const response = await fetch(`${this.address}pages=${encodeURIComponent(listed)}`, options);
      clearTimeout(timer);
      if (response.status === 200) {
        this.giveUp(request);
        await this.read(response.body.getReader(), request);
      } else pauseMs = this.rejected(response);
    } catch {
      // The connection was lost or could not be opened, which is handled like its end.
    }
    clearTimeout(timer);
    if (this.requests.delete(request) && !this.requests.size && pauseMs !== null) this.connectAfter(pauseMs);
  }

  connectAfter(pauseMs) {
    this.isOpen = false;
    this.failures += 1;
    if (this.failures > 1 || pauseMs) this.tell({ kind: "lost" });
    const backoffMs = Math.min(LONGEST_PAUSE_MS, 125 * 2 ** this.failures) * (0.5 + Math.random() / 2);
    this.retry = setTimeout(() => this.connect(), Math.max(pauseMs, backoffMs));
  }

  unanswered(request) {
    this.abandon(request);
    this.lost();
    if (!this.requests.size) this.request();
  }

  lost() {
    this.isDead = true;
    this.tell({ kind: "lost" });
  }

  rejected(response) {
    if (response.status === 401) {
      this.close();
      this.tell({ kind: "ended" });
      return null;
    }
    if (response.status < 500 && response.status !== 429) return REJECTED_PAUSE_MS;
    return Math.min(REJECTED_PAUSE_MS, 1000 * Number(response.headers.get("retry-after") ?? 0));
  }

  async read(reader, request) {
    this.rest = "";
    const decoder = new TextDecoder();
    for (;;) {
      const { done, value } = await reader.read();
      if (done || request.signal.aborted) return;
      this.isDead = false;
      this.failures = 0;
      this.heardAt = performance.now();
      const blocks = (this.rest + decoder.decode(value, { stream: true })).split("\n\n");
      this.rest = blocks.pop();
      for (const block of blocks) this.dispatch(block);
    }
  }

  dispatch(block) {
    const fields = { event: "", id: "", data: [] };
    for (const line of block.split("\n")) {
      const at = line.indexOf(": ");
      if (line.startsWith("data: ")) fields.data.push(line.slice(at + 2));
      else if (at > 0) fields[line.slice(0, at)] = line.slice(at + 2);
    }
    const name = fields.event, data = fields.data.join("\n");
    if (name === "time") {
      const [ms, ...outdated] = data.split(" ");
      this.tell({ kind: "time", ms: Number(ms), outdated });
    } else if (name === "gone") this.tell({ kind: "gone", name: data });
    else if (name) {
      this.pages.set(name, fields.id);
      this.tell({ kind: "changes", name, position: fields.id, html: data });
    }
  }

  check() {
    const now = Date.now(), passed = now - this.ticked;  // performance.now() may stand still while the machine sleeps
    this.ticked = now;
    const isSilent = this.isOpen && performance.now() - this.heardAt > SILENT_MS;
    if (isSilent || passed > SILENT_MS) this.lost();
    if (isSilent || passed > ASLEEP_MS) this.connect();
    // Browsers reuse idle connections, which may be dead too: send several requests; the first answer wins.
    else if (this.isDead && this.requests.size && this.requests.size < MAX_REQUESTS) this.request();
  }
}

// The tabs that use one address, and their stream. A tab is anything with `postMessage`.
class TabGroup {
  constructor(address, whenEmpty) {
    this.address = address;
    this.whenEmpty = whenEmpty;
    this.tabs = new Map();
    this.stream = null;
    this.timer = setInterval(() => this.dropSilentTabs(), 5000);
  }

  follow(tab, name, position) {
    const known = this.tabs.get(tab);
    if (known?.name === name) known.seenAt = performance.now();
    else {
      this.tabs.set(tab, { name, position, seenAt: performance.now() });
      this.plan(100);
    }
  }

  leave(tab) {
    if (this.tabs.delete(tab)) this.plan(1000);  // the next page of the tab may connect soon
  }

  plan(ms) {
    const due = performance.now() + ms;
    if (this.due && this.due <= due) return;
    clearTimeout(this.planned);
    this.due = due;
    this.planned = setTimeout(() => this.reopen(), ms);
  }

  reopen() {
    this.due = null;
    if (!this.tabs.size) {
      this.stream?.close();
      clearInterval(this.timer);
      this.whenEmpty();
      return;
    }
    const pages = new Map();
    for (const { name, position } of [...this.tabs.values()].reverse()) {  // the newest come first
      const known = pages.get(name);
      if (known !== undefined) pages.set(name, earlier(position, known));
      else if (name && pages.size < MAX_PAGES) pages.set(name, position);
    }
    this.stream ??= new UpdateStream(this.address, (message) => this.tell(message));
    this.stream.open(pages);
  }

  dropSilentTabs() {
    for (const [tab, { seenAt }] of this.tabs) if (performance.now() - seenAt > TAB_GONE_MS) this.leave(tab);
  }

  tell(message) {
    for (const [tab, known] of this.tabs) {
      if (message.kind === "changes") {
        if (known.name !== message.name || !isAfter(message.position, known.position)) continue;
        known.position = message.position;
      }
      if (message.kind === "gone" && known.name !== message.name) continue;
      if (message.kind === "time" && known.name && !this.stream.pages.has(known.name)) continue;
      tab.postMessage(message.outdated?.includes(known.name) ? { kind: "lost" } : message);
    }
  }
}

// A position is BOOT.NUMBER; numbers can be compared if the boot is the same.
function isAfter(position, other) {
  const [boot, number] = position.split("."), [otherBoot, otherNumber] = other.split(".");
  return boot !== otherBoot || Number(number) > Number(otherNumber);
}

function earlier(position, other) {
  if (position.split(".")[0] !== other.split(".")[0]) return "";  // all fragments are needed
  return isAfter(position, other) ? other : position;
}

class TabGroups {
  constructor() { this.groups = new Map(); }

  receive(tab, { address, name, position, isLeaving }) {
    let group = this.groups.get(address);
    if (isLeaving) {
      group?.leave(tab);
      return;
    }
    if (!group) this.groups.set(address, group = new TabGroup(address, () => this.groups.delete(address)));
    group.follow(tab, name, position);
  }
}

// Returns the link to the holder of the stream; `isShared` is false if this tab holds the stream.
function connectTab(script, receive, { isShared }) {
  const link = { isShared: false };
  const own = () => {
    const groups = new TabGroups(), tab = { postMessage: receive };
    link.isShared = false;
    link.send = (message) => groups.receive(tab, message);
  };
  own();
  if (!isShared || !self.SharedWorker) return link;
  try {
    const worker = new SharedWorker(script);
    let sent;
    worker.port.onmessage = (event) => receive(event.data);
    worker.onerror = () => {  // the worker could not be loaded
      own();
      if (sent) link.send(sent);
      receive({ kind: "alone" });
    };
    link.isShared = true;
    link.send = (message) => worker.port.postMessage(sent = message);
  } catch {
    // SharedWorkers are not allowed here.
  }
  return link;
}

const STREAM_SCRIPT = self.document?.currentScript?.src;

if (self.SharedWorkerGlobalScope) {
  const groups = new TabGroups();
  self.onconnect = ({ ports: [port] }) => { port.onmessage = (event) => groups.receive(port, event.data); };
}
