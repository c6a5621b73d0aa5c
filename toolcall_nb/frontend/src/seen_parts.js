const IN_VIEW = 0.95; // the fraction of an element; the rest is less than a line

/**
 * The parts of a question that were in view, in any order and for at least one frame. The browser's IntersectionObserver
 * takes into account all boxes that scroll or clip, folds, the window, and the frame that contains the page.
 */
export class SeenParts {
  /** @param {() => void} onChange */
  constructor(onChange) {
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
          if (intersectionRatio >= IN_VIEW) this.seen.add(/** @type {string} */ (this.ids.get(target)));
        }
        this.hasBegun = true;
        onChange();
      },
      { threshold: IN_VIEW },
    );
  }

  /** @param {Map<string, Element>} parts by their ids, in order */
  watch(parts) {
    for (const [id, part] of this.parts) if (parts.get(id) !== part) this.observer.unobserve(part);
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
