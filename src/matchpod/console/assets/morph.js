"use strict";
// Updates a page with the fragments that the service sent. Unchanged nodes are not touched, and changed nodes keep
// their identity, so that focus, selection, scroll position, entered text and open parts are kept.

// Executes the attribute `data-swap` of each fragment; see `page_updates.py`.
function applyFragments(html, prepare) {
  const template = document.createElement("template");
  template.innerHTML = html;
  prepare(template.content);
  for (const fragment of [...template.content.children]) applyFragment(fragment);
}

function applyFragment(fragment) {
  const how = fragment.dataset.swap, target = document.getElementById(fragment.dataset.target ?? fragment.id);
  fragment.removeAttribute("data-swap");
  if (!target) return;
  if (how === "content") morph(target, fragment);
  else if (how === "removed") target.remove();
  else if (how === "before") place(target.parentNode, fragment.children, target);
  else place(target, fragment.children, how === "first" ? target.firstChild : null);
}

function place(parent, items, before) {
  for (const item of [...items]) {
    const known = item.id ? document.getElementById(item.id) : null;
    if (!known) parent.insertBefore(item, before);
    else if (known !== before) move(parent, morph(known, item), before);
    else before = morph(known, item).nextSibling;
  }
}

function move(parent, node, before) {
  if (node.parentNode === parent && node.nextSibling === before) return;
  const focused = node.contains(document.activeElement) ? document.activeElement : null;
  const selection = getSelection(), { anchorNode, anchorOffset, focusNode, focusOffset } = selection;
  const isSelected = node.contains(anchorNode) || node.contains(focusNode);
  if (parent.moveBefore) parent.moveBefore(node, before);
  else parent.insertBefore(node, before);
  if (isSelected) selection.setBaseAndExtent(anchorNode, anchorOffset, focusNode, focusOffset);
  if (focused !== document.activeElement) focused?.focus({ preventScroll: true });
}

function isSame(node, other) {
  return node.nodeName === other.nodeName && node.id === other.id && node.type === other.type;
}

// Returns the node that is on the page afterwards.
function morph(node, wanted) {
  if (node.isEqualNode(wanted)) return node;
  if (!isSame(node, wanted)) {
    node.replaceWith(wanted);
    return wanted;
  }
  if (node.nodeType !== Node.ELEMENT_NODE) {
    node.data = wanted.data;
    return node;
  }
  const isKept = (name) => name === "open" && ["DETAILS", "DIALOG"].includes(node.nodeName);  // users toggle them
  for (const { name } of [...node.attributes]) if (!wanted.hasAttribute(name) && !isKept(name)) node.removeAttribute(name);
  for (const { name, value } of wanted.attributes) {
    if (node.getAttribute(name) !== value && !isKept(name)) node.setAttribute(name, value);
  }
  morphChildren(node, [...wanted.childNodes]);
  return node;
}

// Elements with ids are matched by id, others by position. An element that is needed at a later position is kept.
function morphChildren(parent, wanted) {
  const byId = new Map([...parent.children].filter((one) => one.id).map((one) => [one.id, one]));
  const wantedIds = new Set(wanted.map((one) => one.id).filter(Boolean));
  const isWanted = (node, from) =>
    node.id ? wantedIds.has(node.id) : wanted.some((one, index) => index >= from && isSame(node, one));
  let at = parent.firstChild;
  const dropWhile = (isDropped) => {
    while (at && isDropped(at)) {
      const dropped = at;
      at = at.nextSibling;
      if (!dropped.id || !wantedIds.has(dropped.id)) dropped.remove();
    }
  };
  for (const [index, one] of wanted.entries()) {
    const isElement = one.nodeType === Node.ELEMENT_NODE;
    if (isElement) dropWhile((node) => node.nodeType !== Node.ELEMENT_NODE || (node.id && !wantedIds.has(node.id)));
    let found = one.id ? byId.get(one.id) : at;
    if (one.id && found && found !== at) move(parent, found, at);
    else if (!one.id && isElement && at && !isSame(at, one) && !isWanted(at, index)) {
      while (found && !isSame(found, one)) found = found.nextSibling;
      if (found) dropWhile((node) => node !== found);
    }
    if (found && (one.id || isSame(found, one))) at = morph(found, one).nextSibling;
    else parent.insertBefore(one, at);
  }
  dropWhile(() => true);
}
