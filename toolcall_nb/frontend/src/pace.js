const QUICK_MS = 40; // the kernel's own interval between steps
const SLOWEST_MS = 1280;
const HIDDEN_MS = 5000; // a longer delay means that the page was hidden

/** Chooses how often the kernel should send, so that a slow page spends at most half of its time drawing. */
export class Pace {
  constructor() {
    this.delay = 0; // from a step's arrival until it is drawn, on average
    this.interval = QUICK_MS;
  }

  /** @param {number} delay of the step that was just drawn @returns {number | null} a new interval in ms, if it changes */
  note(delay) {
    if (document.hidden || delay > HIDDEN_MS) return null;
    this.delay += (delay - this.delay) / 4;
    const doublings = Math.max(0, Math.ceil(Math.log2((2 * this.delay) / QUICK_MS)) - 1);
    const wanted = Math.min(SLOWEST_MS, QUICK_MS * 2 ** doublings);
    if (wanted === this.interval || (wanted < this.interval && this.delay * 3 > this.interval)) return null;
    return wanted;
  }
}
