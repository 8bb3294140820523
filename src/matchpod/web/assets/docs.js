// Renders /openapi.json as a readable page. Its text is only inserted as text, never as markup.
"use strict";

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

function bounds(schema) {
  const target = resolve(schema);
  const parts = [];
  if (target.const !== undefined) parts.push("`" + target.const + "`");
  if (target.enum) parts.push(target.enum.filter((v) => v !== null).map((v) => "`" + v + "`").join(", "));
  const [least, most] = [target.minimum, target.maximum].map((n) => (n === undefined ? n : n.toLocaleString("en")));
  if (least !== undefined && most !== undefined) parts.push(`${least} to ${most}`);
  else if (least !== undefined) parts.push(`at least ${least}`);
  if (target.maxLength !== undefined) parts.push(`${target.minLength || 0} to ${target.maxLength} characters`);
  if (target.maxItems !== undefined) parts.push(`at most ${target.maxItems} entries`);
  if (target.pattern) parts.push("`" + target.pattern + "`");
  else if (target.items && resolve(target.items).pattern) parts.push("each `" + resolve(target.items).pattern + "`");
  if (target.format && !target.pattern) parts.push(target.format);
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

function sampleOf(schema, depth = 0) {
  const target = resolve(schema);
  if (target.example !== undefined) return target.example;
  if (target.const !== undefined) return target.const;
  if (target.enum) return target.enum[0];
  const choice = choices(target)[0];
  if (choice) return sampleOf(choice, depth);
  const type = [].concat(target.type)[0];
  if (type === "object") {
    const sample = {};
    for (const name of target.required || []) sample[name] = sampleOf(target.properties[name], depth + 1);
    return sample;
  }
  if (type === "array") return [];
  if (type === "integer" || type === "number") return target.minimum || 0;
  return type === "boolean" ? true : "…";
}

function curl(path, method, operation) {
  const isStream = Object.values(operation.responses).some((r) => r.content && r.content["text/event-stream"]);
  const parts = [`curl${method === "GET" ? "" : " -X " + method}${isStream ? " -N" : ""}`];
  if (operation.security) parts.push('-H "Authorization: Bearer $MATCHPOD_KEY"');
  for (const parameter of operation.parameters || [])
    if (parameter.in === "header" && parameter.required) parts.push(`-H "${parameter.name}: $TOKEN"`);
  const content = operation.requestBody && operation.requestBody.content;
  if (content && content["application/json"]) {
    parts.push('-H "Content-Type: application/json"');
    const schema = content["application/json"].schema;
    if (Object.keys(schema).length) parts.push(`-d '${JSON.stringify(sampleOf(schema))}'`);
    else parts.push("--data-binary @report.json");
  } else if (content) parts.push("--data-binary @log.txt");
  const filled = path.replace(/\{(\w+)\}/g, (_, name) => {
    const parameter = (operation.parameters || []).find((p) => p.name === name && p.in === "path");
    const sample = parameter && (parameter.schema.example || (parameter.schema.enum || [])[0]);
    return sample || (name === "externalMatchId" ? "my-match-1" : "$" + name.toUpperCase());
  });
  parts.push(`"${location.origin}${filled}"`);
  return parts.join(" \\\n  ");
}

function copyable(text) {
  const button = make("button", { type: "button" }, "Copy");
  const pre = make("pre", null, text);
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      // Without https a page may not write to the clipboard, so the text is selected instead.
      getSelection().selectAllChildren(pre);
      button.textContent = "Selected";
    }
    setTimeout(() => (button.textContent = "Copy"), 1500);
  });
  return make("div", { class: "sample" }, button, pre);
}

function expanded(schema) {
  const parts = [];
  const target = resolve(schema);
  const item = target.type === "array" ? target.items : schema;
  if (resolve(item).properties) parts.push(fields(item));
  return parts;
}

function endpointSection(path, method, operation) {
  const isEndpoint = path !== null; // a callback is a request to the caller, so there is no example request
  const id = operation.operationId;
  const section = make("section", { id });
  const address = make("span", { class: "method " + method }, method);
  section.append(make("h3", null, make("a", { href: "#" + id }, operation.summary)));
  section.append(make("div", { class: "address" }, address, " ", isEndpoint ? path : "your callbackUrl"));
  if (operation.description) section.append(prose(operation.description));
  if (operation.parameters) {
    section.append(make("h4", null, "Parameters"));
    const rows = operation.parameters.map((p) => {
      const name = make("span", null, make("code", null, p.name));
      if (p.required) name.append(make("span", { class: "needed" }, "required"));
      return [name, p.in, meaning({ ...p.schema, description: p.description })];
    });
    section.append(table(["Name", "In", "Meaning"], rows));
  }
  for (const [type, media] of Object.entries((operation.requestBody || { content: {} }).content)) {
    section.append(make("h4", null, "Body ", make("span", { class: "soft" }, type)), ...expanded(media.schema));
  }
  if (isEndpoint) section.append(...responses(operation), make("h4", null, "Try it"), copyable(curl(path, method, operation)));
  return section;
}

function responses(operation) {
  const parts = [];
  const failures = [];
  for (const [status, response] of Object.entries(operation.responses)) {
    if (status >= "400") {
      failures.push([make("code", null, status), prose(response.description, "span")]);
      continue;
    }
    if (!response.content) parts.push(make("h4", null, `Response ${status}`), prose(response.description));
    for (const [type, media] of Object.entries(response.content || {})) {
      const schema = media.schema;
      const shown = type === "application/json" && Object.keys(schema).length ? typeOf(schema) : type;
      parts.push(make("h4", null, `Response ${status} `, make("span", { class: "soft" }, shown)), ...expanded(schema));
    }
  }
  parts.push(make("h4", null, "Errors"), table(["Status", "Code and meaning"], failures));
  return parts;
}

function schemaSection(name, schema) {
  const section = make("section", { id: "schema-" + name }, make("h3", null, name));
  if (schema.description) section.append(prose(schema.description));
  if (schema.properties) section.append(fields(schema));
  else if (schema.enum) section.append(prose("One of " + bounds(schema) + "."));
  else if (choices(schema).length) section.append(make("p", null, typeOf({ anyOf: choices(schema) })));
  return section;
}

function contents(groups, schemas) {
  const nav = document.getElementById("contents");
  const search = make("input", { type: "search", placeholder: "Find…", "aria-label": "Find" });
  nav.replaceChildren(make("strong", null, "Matchpod API"), search);
  const list = (title, entries) => {
    nav.append(make("h2", null, title), make("ul", null, ...entries.map((entry) => make("li", null, entry))));
  };
  for (const [title, entries] of groups)
    list(title, entries.map(([, method, operation]) =>
      make("a", { href: "#" + operation.operationId }, make("span", { class: "method " + method }, method), " ", operation.summary)));
  list("Schemas", schemas.map((name) => linkTo(name)));
  search.addEventListener("input", () => {
    const wanted = search.value.toLowerCase();
    for (const item of nav.querySelectorAll("li")) item.hidden = !item.textContent.toLowerCase().includes(wanted);
  });
}

function render() {
  const page = document.getElementById("page");
  page.replaceChildren(make("h1", null, doc.info.title), prose(`Version ${doc.info.version}. ${doc.info.description}`));
  page.append(prose("Send your key as `Authorization: Bearer <key>`. Bodies are JSON. Every error has the schema "));
  page.lastChild.append(linkTo("Error"), "; ", make("a", { href: "/openapi.json" }, "OpenAPI document"), ".");
  const operations = [];
  for (const [path, methods] of Object.entries(doc.paths))
    for (const [method, operation] of Object.entries(methods)) operations.push([path, method.toUpperCase(), operation]);
  const groups = doc.tags.map((tag) => [tag.name, operations.filter(([, , op]) => op.tags.includes(tag.name))]);
  for (const [name, entries] of groups) {
    page.append(prose(doc.tags.find((tag) => tag.name === name).description, "h2"));
    for (const entry of entries) page.append(endpointSection(...entry));
  }
  const callbacks = Object.values(doc.webhooks || {}).map((methods) => [null, "POST", methods.post]);
  page.append(make("h2", null, "Callbacks to your callbackUrl."));
  for (const entry of callbacks) page.append(endpointSection(...entry));
  groups.splice(1, 0, ["callbacks", callbacks]);
  page.append(make("h2", null, "Schemas"));
  const names = Object.keys(doc.components.schemas).sort();
  for (const name of names) page.append(schemaSection(name, doc.components.schemas[name]));
  contents(groups, names);
  if (location.hash) {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target) target.scrollIntoView();
  }
}

async function load() {
  try {
    const response = await fetch("/openapi.json");
    if (!response.ok) throw new Error(`/openapi.json returned ${response.status}`);
    doc = await response.json();
    render();
  } catch (error) {
    document.getElementById("page").replaceChildren(make("p", null, `The API description could not be loaded: ${error.message}`));
  }
}

load();
