import { formatDuration } from "./clocks.js";
import { element } from "./dom.js";
import { ROOT } from "./protocol.js";

/** @typedef {import("./live_run.js").LiveRun} LiveRun @typedef {import("./node_elements.js").NodeElements} NodeElements */

/**
 * Shows also in the static output how long calls and reasoning took, as long as that page stays open; their style is the
 * live view's. The notebook does not contain these times, so the same run is saved as the same output each time.
 *
 * @param {LiveRun} run
 * @param {NodeElements} elements of the live view
 * @param {Element} root of the static output
 */
export function showTimes(run, elements, root) {
  const folds = [...root.querySelectorAll(".tc-fold > summary")].filter((each) => each.textContent === "Reasoning");
  showIn(run, elements, "<summary>Reasoning<", folds);
  showIn(run, elements, '<div class="tc-call', [...root.querySelectorAll(".tc-call > details > summary")]);
}

/** @param {LiveRun} run @param {NodeElements} elements @param {string} html in each node that has such a summary @param {Element[]} summaries */
function showIn(run, elements, html, summaries) {
  const ids = nodesWith(run, html, ROOT);
  if (ids.length !== summaries.length) return; // the output does not have all of the run
  ids.forEach((id, place) => {
    const text = formatDuration(run.clocks.seconds(id), false);
    const [summary, live] = [summaries[place], elements.get(id)?.querySelector("summary")?.textContent ?? ""];
    const isSame = live.trimEnd() === `${summary.textContent}${text}`; // the output of another run may be there
    if (text && isSame) summary.append(element("span", "tc-time", text));
  });
}

/** @param {LiveRun} run @param {string} html @param {string} id @returns {string[]} the nodes with it, in the order of the document */
function nodesWith(run, html, id) {
  const node = run.tree.node(id);
  return node.html.includes(html) ? [id] : node.children.flatMap((child) => nodesWith(run, html, child));
}
