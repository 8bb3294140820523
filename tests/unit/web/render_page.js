// Runs docs.js on an OpenAPI document with the few parts of the DOM that it uses, and prints what it rendered:
// node render_page.js docs.js document.json "?internal"
"use strict";

const fs = require("node:fs");
const vm = require("node:vm");

const [script, source, search] = process.argv.slice(2);

class Element {
  constructor(tag) {
    Object.assign(this, { tagName: tag.toUpperCase(), children: [], attributes: {}, parentElement: null });
  }
  setAttribute(name, value) { this.attributes[name] = String(value); }
  append(...children) {
    for (const child of children) {
      if (child === null || child === undefined) throw new Error(`${this.tagName} gets ${child}`);
      this.children.push(child);
      if (child instanceof Element) child.parentElement = this;
    }
  }
  prepend(...children) { this.children.unshift(...children); }
  replaceChildren(...children) { this.children = []; this.append(...children); }
  addEventListener() {}
  scrollIntoView() {}
  set textContent(text) { this.children = [text]; }
  get textContent() {
    return this.children.map((child) => (child instanceof Element ? child.textContent : String(child))).join("");
  }
  *all() {
    yield this;
    for (const child of this.children) if (child instanceof Element) yield* child.all();
  }
}

const roots = { page: new Element("main"), contents: new Element("nav") };
const fetched = [];
const everything = () => Object.values(roots).flatMap((root) => [...root.all()]);
const context = {
  document: {
    createElement: (tag) => new Element(tag),
    getElementById: (id) => roots[id] || everything().find((node) => node.attributes.id === id),
  },
  location: { search, hash: "", origin: "http://service" },
  matchMedia: () => ({ matches: true, addEventListener() {} }),
  addEventListener() {},
  fetch: async (path) => {
    fetched.push(path);
    return { ok: true, json: async () => JSON.parse(fs.readFileSync(source, "utf8")) };
  },
};
vm.runInNewContext(fs.readFileSync(script, "utf8"), context, { filename: script });
setImmediate(() => setImmediate(() => {
  const nodes = [...roots.page.all()];
  console.log(JSON.stringify({
    fetched,
    text: roots.page.textContent,
    menu: roots.contents.textContent,
    ids: nodes.map((node) => node.attributes.id).filter(Boolean),
    links: everything().map((node) => node.attributes.href).filter((href) => href && href.startsWith("#")),
    shown: nodes.filter((node) => node.tagName === "PRE").map((node) => node.textContent),
    headings: nodes.filter((node) => node.tagName === "H2").map((node) => node.textContent),
  }));
}));
