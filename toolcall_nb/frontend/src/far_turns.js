import { element } from "./dom.js";

const STATIC_ROOT = ".tc-run:not(.tc-view) > .tc";
const MARK = "data-tc-far";

/**
 * Lets the browser skip the turns that are far away in a view also in the static output that will replace the view. They
 * keep their heights.
 *
 * JupyterLab measures the static output in the same task in which it inserts it, before any code of this module runs. So
 * the style of the turns is in the page before they are; later they get it themselves.
 *
 * @param {Element} view
 * @param {Map<number, number>} heights in px, by the turn's place from 1
 * @returns {(() => void) | null} to be called when the view is closed; null if there is nothing to skip
 */
export function skipInStaticOutput(view, heights) {
  const area = view.closest(".jp-OutputArea");
  if (!area || !heights.size || area.querySelector(STATIC_ROOT)) return null; // the turns of another run have other heights
  const rules = [...heights].map(
    ([place, height]) => `[${MARK}] ${STATIC_ROOT} > .tc-turn:nth-child(${place}) { content-visibility: auto; contain-intrinsic-block-size: auto ${height}px; }`,
  );
  const sheet = element("style", "", rules.join("\n"));
  document.head.append(sheet);
  area.setAttribute(MARK, "");
  return () => setTimeout(() => settle(area, heights, sheet)); // a front end may close the view right before it replaces it
}

/** @param {Element} area @param {Map<number, number>} heights @param {Element} sheet */
function settle(area, heights, sheet) {
  const turns = /** @type {NodeListOf<HTMLElement>} */ (area.querySelectorAll(`${STATIC_ROOT} > .tc-turn`));
  for (const [place, height] of heights) {
    const style = turns[place - 1]?.style;
    style?.setProperty("content-visibility", "auto");
    style?.setProperty("contain-intrinsic-block-size", `auto ${height}px`);
  }
  area.removeAttribute(MARK);
  sheet.remove();
}
