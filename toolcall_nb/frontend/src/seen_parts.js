const IN_VIEW = 0.95; // the fraction of an element; the rest is less than a line

/**
 * The parts of a question that were in view, in any order and for at least one frame. The browser's IntersectionObserver
 * takes into account all boxes that scroll or clip, folds, the window, and the frame that contains the page.
 */
export class SeenParts {
  /** @param {() => void} onChange @param {(part: Element) => boolean} isCovered whether something else lies over a part */
  constructor(onChange, isCovered) {
    this.onChange = onChange;
    this.isCovered = isCovered;
    /** @type {Set<Element>} */
    this.inView = new Set();
    /** @type {Map<string, Element>} */
    this.parts = new Map();
    /** @type {WeakMap<Element, string>} */
    this.ids = new WeakMap();
    /** @type {Set<string>} */
    this.seen = new Set();
    this.hasBegun = false;
    this.observer = new IntersectionObserver(
      (entries) => {
        for (const { target, intersectionRatio } of entries) {
          if (intersectionRatio >= IN_VIEW) this.inView.add(target);
          else this.inView.delete(target);
        }
        this.hasBegun = true;
        this.look();
      },
      { threshold: IN_VIEW },
    );
  }

  /** Notes the parts in view that nothing covers now. Called also when that may have changed. */
  look() {
    for (const part of this.inView) if (!this.isCovered(part)) this.seen.add(/** @type {string} */ (this.ids.get(part)));
    this.onChange();
  }

  /** @param {Map<string, Element>} parts by their ids, in order */
  watch(parts) {
    for (const [id, part] of this.parts) {
      if (parts.get(id) === part) continue;
      this.observer.unobserve(part);
      this.inView.delete(part);
    }
    for (const [id, part] of parts) {
      if (this.parts.get(id) === part) continue;
      this.ids.set(part, id);
      this.observer.observe(part);
    }
    this.parts = parts;
  }

  /** The first part that was not in view. */
  get next() {
    for (const [id, part] of this.parts) if (!this.seen.has(id)) return part;
    return null;
  }

  close() {
    this.observer.disconnect();
  }
}
