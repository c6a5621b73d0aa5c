const LINES = "p, pre, li, tr, summary, blockquote, h1, h2, h3, h4, h5, h6, .tc-label";

/** @template {keyof HTMLElementTagNameMap} K @param {K} tag @param {string} className @param {string} [text] */
export function element(tag, className, text = "") {
  return Object.assign(document.createElement(tag), { className, textContent: text });
}

/** @param {string} text @param {string} kind @param {() => void} act */
export function button(text, kind, act) {
  const made = element("button", `tc-button ${kind}`, text);
  made.type = "button";
  made.addEventListener("click", act);
  return made;
}

/** Parses the one element of HTML from the kernel, which escapes it. A template runs no script. @param {string} html */
export function parse(html) {
  const template = document.createElement("template");
  template.innerHTML = html;
  return template.content.firstElementChild ?? document.createElement("span");
}

/** @param {Element} place @param {string} text */
export function setText(place, text) {
  if (place.textContent !== text) place.textContent = text;
}

/** Replaces only the characters that differ, so that a selection in the rest stays. @param {CharacterData} node @param {string} text */
export function morphText(node, text) {
  const old = node.data;
  if (old === text) return;
  if (text.startsWith(old)) return node.appendData(text.slice(old.length));
  const shorter = Math.min(old.length, text.length);
  let start = 0;
  while (start < shorter && old[start] === text[start]) start++;
  let same = 0;
  while (same < shorter - start && old[old.length - 1 - same] === text[text.length - 1 - same]) same++;
  node.replaceData(start, old.length - start - same, text.slice(start, text.length - same));
}

/** @param {Node} node @returns {HTMLDetailsElement[]} the node itself, if it is one, and those within */
export function detailsIn(node) {
  if (!(node instanceof Element)) return [];
  const within = [...node.querySelectorAll("details")];
  return node instanceof HTMLDetailsElement ? [node, ...within] : within;
}

/** Returns an element's text as plain text, with its blocks on lines of their own. @param {Element} root */
export function plainText(root) {
  const copy = /** @type {Element} */ (root.cloneNode(true));
  for (const line of copy.querySelectorAll(LINES)) line.append("\n");
  return (copy.textContent ?? "").replace(/\n{3,}/g, "\n\n").trim();
}
