// Renders an OpenAPI document as a readable page. Its text is only inserted as text, never as markup.
"use strict";

const SOURCES = { callers: "/openapi.json", internal: "/openapi-internal.json" };
const source = location.search === "?internal" ? SOURCES.internal : SOURCES.callers;

let doc;

function make(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) node.setAttribute(name, value);
  for (const child of children) if (child !== null && child !== undefined) node.append(child);
  return node;
}

// `code` in backticks becomes <code>.
function prose(text, tag = "p") {
  const node = make(tag);
  (text || "").split("`").forEach((part, i) => node.append(i % 2 ? make("code", null, part) : part));
  return node;
}

function refName(schema) {
  return schema && schema.$ref ? schema.$ref.split("/").pop() : null;
}

function resolve(schema) {
  const name = refName(schema);
  return name ? doc.components.schemas[name] : schema || {};
}

function choices(schema) {
  return (schema.oneOf || schema.anyOf || []).filter((choice) => choice.type !== "null");
}

function typeOf(schema) {
  const name = refName(schema);
  const target = resolve(schema);
  if (name && !target.enum) return linkTo(name);
  const span = make("span");
  if (target.oneOf || target.anyOf) {
    (target.oneOf || target.anyOf).forEach((choice, i) => span.append(i ? " or " : "", typeOf(choice)));
    return span;
  }
  const types = [].concat(target.type || (target.enum ? "string" : "any"));
  types.forEach((type, i) => {
    span.append(i ? " or " : "");
    if (type === "array" && target.items) span.append("array of ", typeOf(target.items));
    else span.append(type);
  });
  return span;
}

function linkTo(name) {
  return make("a", { href: "#schema-" + name }, name);
}

const SHOWN_FORMATS = { "date-time": "ISO 8601", uuid: "UUID" };
const MAX_PATTERN = 24; // longer patterns are for programs; the description says the same in words

function bounds(schema) {
  const whole = resolve(schema);
  const target = choices(whole).length === 1 ? resolve(choices(whole)[0]) : whole; // a value or null
  const parts = [];
  if (target.const !== undefined) parts.push("`" + target.const + "`");
  const values = (target.enum || []).filter((v) => v !== null).map((v) => "`" + v + "`");
  if (!values.every((value) => (schema.description || "").includes(value))) parts.push(values.join(", "));
  const [least, most] = [target.minimum, target.maximum].map((n) => (n === undefined ? n : n.toLocaleString("en")));
  if (least !== undefined && most !== undefined) parts.push(`${least} to ${most}`);
  else if (least !== undefined) parts.push(`at least ${least}`);
  if (target.maxLength !== undefined) parts.push(`${target.minLength || 0} to ${target.maxLength} characters`);
  if (target.maxItems !== undefined) parts.push(`at most ${target.maxItems} entries`);
  const pattern = target.pattern || (target.items && resolve(target.items).pattern);
  if (pattern && pattern.length <= MAX_PATTERN) parts.push((target.pattern ? "`" : "each `") + pattern + "`");
  if (SHOWN_FORMATS[target.format] && !schema.description) parts.push(SHOWN_FORMATS[target.format]);
  if (target.default !== undefined) parts.push("default `" + target.default + "`");
  return parts.join("; ");
}

function table(heads, rows) {
  const body = rows.map((cells) => make("tr", null, ...cells.map((cell) => make("td", null, cell))));
  const head = make("tr", null, ...heads.map((text) => make("th", null, text)));
  return make("div", { class: "wide" }, make("table", null, make("thead", null, head), make("tbody", null, ...body)));
}

function meaning(schema) {
  const cell = make("span");
  if (schema.description) cell.append(prose(schema.description, "span"));
  const limits = bounds(schema);
  if (limits) cell.append(schema.description ? " " : "", prose(limits, "span"));
  return cell;
}

function fields(schema) {
  const target = resolve(schema);
  const needed = new Set(target.required || []);
  const isRequest = target.additionalProperties === false; // only request bodies forbid other fields
  const rows = Object.entries(target.properties || {}).map(([name, field]) => {
    const cell = make("span", null, make("code", null, name));
    if (isRequest && needed.has(name)) cell.append(make("span", { class: "needed" }, "required"));
    if (!isRequest && !needed.has(name)) cell.append(make("span", { class: "needed" }, "optional"));
    return [cell, typeOf(field), meaning(field)];
  });
  return table(["Field", "Type", "Meaning"], rows);
}

// The values of the examples of a body, by label.
function examplesOf(media) {
  const found = {};
  for (const [label, example] of Object.entries((media && media.examples) || {})) {
    const stored = example.$ref ? doc.components.examples[example.$ref.split("/").pop()] : example;
    found[label] = stored.value;
  }
  return found;
}

function asText(value) {
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}

// A box with one of several texts, chosen by its label.
function exampleBox(title, texts) {
  const labels = Object.keys(texts);
  if (!labels.length) return null;
  const pre = make("pre", { tabindex: "0" }, texts[labels[0]]);
  const button = make("button", { type: "button" }, "Copy");
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(pre.textContent);
      button.textContent = "Copied";
    } catch {
      // Without https a page may not write to the clipboard, so the text is selected instead.
      getSelection().selectAllChildren(pre);
      button.textContent = "Selected";
    }
    setTimeout(() => (button.textContent = "Copy"), 1500);
  });
  const bar = make("div", { class: "bar" }, make("span", null, title));
  if (labels.length > 1) {
    const choice = make("select", { "aria-label": title }, ...labels.map((label) => make("option", null, label)));
    choice.addEventListener("change", () => (pre.textContent = texts[choice.value]));
    bar.append(choice);
  }
  bar.append(button);
  return make("div", { class: "sample" }, bar, pre);
}

function curl(path, method, operation, body) {
  const isStream = Object.values(operation.responses).some((r) => r.content && r.content["text/event-stream"]);
  const parts = [`curl${method === "GET" ? "" : " -X " + method}${isStream ? " -N" : ""}`];
  if (operation.security.length) parts.push('-H "Authorization: Bearer $MATCHPOD_KEY"');
  for (const parameter of operation.parameters || [])
    if (parameter.in === "header" && parameter.required) parts.push(`-H "${parameter.name}: $TOKEN"`);
  const content = operation.requestBody && operation.requestBody.content;
  if (content && content["application/json"]) parts.push('-H "Content-Type: application/json"');
  if (typeof body === "string") parts.push("--data-binary @log.txt");
  else if (body !== undefined) parts.push(`-d '${JSON.stringify(body, null, 2).replaceAll("'", "'\\''")}'`);
  const filled = path.replace(/\{(\w+)\}/g, (_, name) => {
    const parameter = (operation.parameters || []).find((p) => p.name === name && p.in === "path");
    return (parameter && parameter.example) || "$" + name.toUpperCase();
  });
  parts.push(`"${location.origin}${filled}"`);
  return parts.join(" \\\n  ");
}

function requestBox(path, method, operation) {
  const media = Object.values((operation.requestBody || { content: {} }).content)[0];
  const bodies = Object.entries(examplesOf(media));
  if (!bodies.length) return exampleBox("Request", { request: curl(path, method, operation) });
  const texts = bodies.map(([label, body]) => [label, curl(path, method, operation, body)]);
  return exampleBox("Request", Object.fromEntries(texts));
}

function expanded(schema) {
  const target = resolve(schema);
  const item = target.type === "array" ? target.items : schema;
  return resolve(item).properties ? fields(item) : null;
}

function folded(title, ...children) {
  return make("details", null, make("summary", null, title), ...children);
}

function parameterTable(parameters) {
  const rows = parameters.map((p) => {
    const name = make("span", null, make("code", null, p.name));
    if (p.required) name.append(make("span", { class: "needed" }, "required"));
    if (p.deprecated) name.append(make("span", { class: "needed" }, "deprecated"));
    return [name, p.in, meaning({ ...p.schema, description: p.description })];
  });
  return table(["Name", "In", "Meaning"], rows);
}

function endpointSection(path, method, operation) {
  const isEndpoint = path !== null; // a callback is a request to the caller
  const id = operation.operationId;
  const section = make("section", { id });
  const address = make("span", { class: "method " + method }, method);
  section.append(make("h3", null, make("a", { href: "#" + id }, operation.summary)));
  section.append(make("div", { class: "address" }, address, " ", isEndpoint ? path : "your callbackUrl"));
  if (operation.deprecated) section.append(make("p", { class: "needed" }, "deprecated"));
  if (operation.description) section.append(prose(operation.description));
  if (operation.deprecated) return section; // everything else is at the endpoint that is preferred
  if (operation.parameters) section.append(make("h4", null, "Parameters"), parameterTable(operation.parameters));
  for (const [type, media] of Object.entries((operation.requestBody || { content: {} }).content)) {
    const shape = expanded(media.schema);
    if (shape) section.append(make("h4", null, "Body ", make("span", { class: "soft" }, type)), shape);
    const values = examplesOf(media);
    const isText = Object.values(values).some((value) => typeof value === "string"); // too long for a command line
    if (!isEndpoint || isText) section.append(exampleBox("Body", texts(values)));
  }
  if (isEndpoint) section.append(requestBox(path, method, operation), ...responses(operation));
  return section;
}

function texts(values, prefix = "") {
  return Object.fromEntries(Object.entries(values).map(([label, value]) => [prefix + label, asText(value)]));
}

function responses(operation) {
  const parts = [];
  const failures = [];
  const examples = {};
  for (const [status, response] of Object.entries(operation.responses)) {
    if (status >= "400") {
      failures.push([make("code", null, status), prose(response.description, "span")]);
      for (const media of Object.values(response.content)) Object.assign(examples, texts(examplesOf(media), status + " "));
      continue;
    }
    if (!response.content) parts.push(make("h4", null, `Response ${status}`), prose(response.description));
    for (const [type, media] of Object.entries(response.content || {})) {
      const schema = media.schema;
      const shown = type === "application/json" && Object.keys(schema).length ? typeOf(schema) : type;
      parts.push(make("h4", null, `Response ${status} `, make("span", { class: "soft" }, shown)));
      parts.push(exampleBox("Response", texts(examplesOf(media))));
      const shape = expanded(schema);
      if (shape) parts.push(folded("Fields of the response", shape));
    }
  }
  const statuses = failures.map(([status]) => status.textContent).join(", ");
  parts.push(folded(`Errors: ${statuses}`, table(["Status", "Code and meaning"], failures), exampleBox("Error", examples)));
  return parts.filter((part) => part !== null);
}

function schemaSection(name, schema) {
  const section = make("details", { id: "schema-" + name, class: "schema" }, make("summary", null, name));
  if (schema.description) section.append(prose(schema.description));
  if (schema.properties) section.append(fields(schema));
  else if (schema.enum) section.append(prose("One of " + bounds(schema) + "."));
  else if (choices(schema).length) section.append(make("p", null, typeOf({ anyOf: choices(schema) })));
  return section;
}

// The groups of endpoints, in the order in which callers need them: the first one that matches a path counts.
const GROUPS = [
  ["Follow a match (streams)", (path) => path.endsWith("/stream")],
  ["Series, maps and statistics", (path) => path.startsWith("/api/v1/cs2/")],
  ["Deliveries of callbacks", (path) => path.startsWith("/api/v1/callbacks")],
  ["Webhooks", (path) => path.startsWith("/api/v1/webhooks")],
  ["Audit log", (path) => path === "/api/v1/audit"],
  ["Matches and servers", (path) => path.startsWith("/api/")],
  ["From game servers", (path) => path.startsWith("/ingest/")],
  ["For operators", () => true],
];
const ORDER = ["Matches and servers", "Callbacks to your callbackUrl", "Series, maps and statistics",
  "Follow a match (streams)", "Deliveries of callbacks", "Webhooks", "Events to your webhooks", "Audit log", "From game servers", "For operators", "Deprecated"];

function groupsOf(operations, callbacks) {
  const groups = new Map(ORDER.map((title) => [title, []]));
  for (const entry of operations) {
    const title = entry[2].deprecated ? "Deprecated" : GROUPS.find(([, matches]) => matches(entry[0]))[0];
    groups.get(title).push(entry);
  }
  const isCallback = ([, , operation]) => doc.isCallback.has(operation.operationId);
  groups.set("Callbacks to your callbackUrl", callbacks.filter(isCallback));
  groups.set("Events to your webhooks", callbacks.filter((entry) => !isCallback(entry)));
  return [...groups].filter(([, entries]) => entries.length);
}

function contents(groups, schemas) {
  const search = make("input", { type: "search", placeholder: "Find…", "aria-label": "Find" });
  const menu = make("details", null, make("summary", null, doc.info.title), search);
  const isNarrow = matchMedia("(max-width: 50rem)");
  menu.open = !isNarrow.matches;
  isNarrow.addEventListener("change", () => (menu.open = !isNarrow.matches));
  document.getElementById("contents").replaceChildren(menu);
  const list = (title, entries) => {
    menu.append(make("h2", null, title), make("ul", null, ...entries.map((entry) => make("li", null, entry))));
  };
  for (const [title, entries] of groups)
    list(title, entries.map(([, method, operation]) =>
      make("a", { href: "#" + operation.operationId }, make("span", { class: "method " + method }, method),
        make("span", null, operation.summary))));
  list("Schemas", schemas.map((name) => linkTo(name)));
  menu.addEventListener("click", (event) => {
    if (isNarrow.matches && event.target.closest("a")) menu.open = false;
  });
  search.addEventListener("input", () => {
    const wanted = search.value.toLowerCase();
    for (const item of menu.querySelectorAll("li")) item.hidden = !item.textContent.toLowerCase().includes(wanted);
    for (const head of menu.querySelectorAll("h2")) head.hidden = !head.nextElementSibling.querySelector("li:not([hidden])");
  });
}

function step(operationId, text) {
  const item = prose(text, "li");
  item.prepend(make("a", { href: "#" + operationId }, doc.summaries[operationId]), ": ");
  return item;
}

function introduction() {
  const isInternal = source !== SOURCES.callers;
  const other = isInternal ? make("a", { href: "/docs" }, "The API for callers")
    : make("a", { href: "/docs?internal" }, "Endpoints for game servers and operators");
  const parts = [make("h1", null, doc.info.title), prose(doc.info.description)];
  if (!isInternal) {
    const auth = prose("Send your key as `Authorization: Bearer <key>`. Bodies are JSON. Every error has the schema ");
    auth.append(linkTo("Error"), ".");
    parts.push(auth, make("ol", null,
      step("createMatch", "choose a region, the game settings, the players and your `callbackUrl`."),
      step("getServer", "poll it until `status` is `running`; players connect then, and `match` has the live score."),
      step("matchOver", "your `callbackUrl` receives the full result."),
      step("getMatchByExternalId", "read the same result at any time.")));
  }
  const links = make("p", { class: "soft" }, `Version ${doc.info.version}. `, make("a", { href: source }, "OpenAPI document"));
  links.append(". ", other, ".");
  return [...parts, links];
}

// Opens the folded parts around the target of the address, and shows it.
function showTarget() {
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target) return;
  for (let node = target; node; node = node.parentElement) if (node.tagName === "DETAILS") node.open = true;
  target.scrollIntoView();
}

function render() {
  const operations = [];
  doc.summaries = {};
  for (const [path, methods] of Object.entries(doc.paths))
    for (const [method, operation] of Object.entries(methods)) operations.push([path, method.toUpperCase(), operation]);
  doc.isCallback = new Set(["matchOver", "matchCanceled"]);
  const callbacks = Object.values(doc.webhooks || {}).map((methods) => [null, "POST", methods.post]);
  for (const [, , operation] of [...operations, ...callbacks]) doc.summaries[operation.operationId] = operation.summary;
  const groups = groupsOf(operations, callbacks);
  const page = document.getElementById("page");
  page.replaceChildren(...introduction());
  for (const [title, entries] of groups) {
    page.append(make("h2", null, title));
    for (const entry of entries) page.append(endpointSection(...entry));
  }
  page.append(make("h2", null, "Schemas"));
  const names = Object.keys(doc.components.schemas).sort();
  for (const name of names) page.append(schemaSection(name, doc.components.schemas[name]));
  contents(groups, names);
  showTarget();
  addEventListener("hashchange", showTarget);
}

async function load() {
  try {
    const response = await fetch(source);
    if (!response.ok) throw new Error(`${source} returned ${response.status}`);
    doc = await response.json();
    document.title = doc.info.title;
    render();
  } catch (error) {
    document.getElementById("page").replaceChildren(make("p", null, `The API description could not be loaded: ${error.message}`));
  }
}

load();
