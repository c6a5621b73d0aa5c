const ROWS = ".tc, .tc-turn, .tc-said, .tc-group, .tc-text, .tc-call, .tc-call > details"; // blocks below each other

/**
 * Records the element at the upper edge of the visible area, if the view begins above it. After a change, `keep` scrolls
 * it back to its place, since JupyterLab turns off the browser's scroll anchoring for most cells.
 *
 * @param {Element} view
 * @param {Element} root
 */
export function anchorScroll(view, root) {
  const scroller = view.isConnected ? scrollerOf(view) : null;
  if (!scroller) return null;
  const edge = scroller === document.scrollingElement ? 0 : scroller.getBoundingClientRect().top;
  const { top, bottom } = view.getBoundingClientRect();
  view.classList.toggle("tc-still", top < edge); // `keep` does not see a height that changes later (ask.css)
  if (top >= edge) return null;
  const isAbove = bottom <= edge; // then the content below moves with the view's lower end
  const marks = isAbove ? [] : marksAt(root, edge);
  const tops = marks.map((mark) => mark.getBoundingClientRect().top);
  return {
    keep() {
      const kept = marks.findLastIndex((mark) => mark.isConnected && mark.checkVisibility());
      if (kept < 0 && !isAbove) return;
      const moved = isAbove ? view.getBoundingClientRect().bottom - bottom : marks[kept].getBoundingClientRect().top - tops[kept];
      if (Math.abs(moved) >= 1) scroller.scrollTop += moved;
    },
  };
}

/** Returns the first element that reaches below the edge, then the first such child of it, and so on. @param {Element} root @param {number} edge */
function marksAt(root, edge) {
  const marks = [root];
  for (let last = root; last.matches(ROWS); ) {
    let [from, to] = [0, last.children.length];
    while (from < to) {
      const middle = (from + to) >> 1;
      if (last.children[middle].getBoundingClientRect().bottom > edge) to = middle;
      else from = middle + 1;
    }
    last = last.children[from];
    if (!last) break;
    marks.push(last);
    if (last.getBoundingClientRect().top >= edge) break;
  }
  return marks;
}

/** Returns the nearest ancestor that scrolls vertically; an overflow of one pixel may be rounding. @param {Element} within */
function scrollerOf(within) {
  for (let each = within.parentElement; each; each = each.parentElement) {
    if (each.scrollHeight > each.clientHeight + 1 && /auto|scroll/.test(getComputedStyle(each).overflowY)) return each;
  }
  return document.scrollingElement;
}
