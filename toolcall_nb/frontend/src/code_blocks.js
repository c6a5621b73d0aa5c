import { button } from "./dom.js";

const COPIED_MS = 1500;

/**
 * Adds a button to each block of code that has none: it shows the language, and copies the code. Its words are in the style
 * sheet, so the view's text stays the same as that of the static output.
 *
 * @param {Element} element
 * @param {(added: Element) => void} own called with each button
 */
export function addCopyButtons(element, own) {
  const blocks = element.matches("pre.tc-code") ? [element] : element.getElementsByClassName("tc-code");
  for (const block of blocks) {
    const code = block.querySelector("code");
    if (!code || block.querySelector(".tc-copy")) continue;
    const language = /language-(\S+)/.exec(code.className)?.[1] ?? "";
    const copying = button("", "tc-copy", () => void copy(code, copying));
    copying.setAttribute("aria-label", language ? `Copy code in ${language}` : "Copy code");
    if (language) copying.dataset.language = language;
    own(copying);
    block.append(copying);
  }
}

/** @param {Element} code @param {HTMLElement} copying the button, which says that it was copied */
async function copy(code, copying) {
  try {
    await navigator.clipboard.writeText(code.textContent ?? "");
  } catch { // a page without https, or a frame, may not use it
    document.getSelection()?.selectAllChildren(code);
    document.execCommand("copy");
  }
  copying.classList.add("tc-copied");
  setTimeout(() => copying.classList.remove("tc-copied"), COPIED_MS);
}
