/**
 * Takes the content of groups that are out of sight out of the page, once the run has ended: a front end replaces the view
 * in one task, which takes the longer the more elements are in the page. The elements stay as they are, and come back
 * when their group comes into sight.
 */
export class DetachedGroups {
  constructor() {
    /** @type {Map<HTMLElement, Element[]>} */
    this.contents = new Map();
    this.hasBegun = false;
    this.timer = 0;
  }

  /** Takes out the content of each group that the browser skips, one group at a time. A second call does nothing. @param {Iterable<HTMLElement>} groups @param {WeakMap<Element, number>} heights in px */
  begin(groups, heights) {
    if (this.hasBegun) return;
    this.hasBegun = true;
    const skipped = [...groups].filter((each) => !each.firstElementChild?.checkVisibility({ contentVisibilityAuto: true }));
    const next = () => {
      const group = skipped.pop();
      if (!group?.isConnected) return;
      this.#detach(group, heights.get(group) ?? 0);
      this.timer = window.setTimeout(next);
    };
    this.timer = window.setTimeout(next);
  }

  /** Puts the content back, and takes out no more. Returns whether anything was taken out. */
  end() {
    clearTimeout(this.timer);
    const wasDetached = this.contents.size > 0;
    for (const group of [...this.contents.keys()]) this.#attach(group);
    return wasDetached;
  }

  /** @param {HTMLElement} group @param {number} height */
  #detach(group, height) {
    this.contents.set(group, [...group.children]);
    group.style.minBlockSize = `${height}px`;
    group.addEventListener("contentvisibilityautostatechange", () => this.#attach(group), { once: true });
    group.replaceChildren();
  }

  /** @param {HTMLElement} group */
  #attach(group) {
    const content = this.contents.get(group);
    if (!content) return;
    group.replaceChildren(...content);
    group.style.minBlockSize = "";
    this.contents.delete(group);
  }
}
