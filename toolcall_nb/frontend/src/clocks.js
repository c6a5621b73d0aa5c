/** @typedef {import("./protocol.js").Step} Step */
/** @typedef {{since: number, seconds: number, running: boolean}} RunningClock  `since` by the kernel's clock, in seconds */

/** The clocks of the run and of its calls. The kernel sends when they start and stop; in between, the page counts. */
export class Clocks {
  constructor() {
    /** @type {Map<string, RunningClock>} by node */
    this.clocks = new Map();
    this.lag = Infinity; // from the kernel's clock to the page's; the smallest so far, since messages may be late
  }

  clear() {
    this.clocks.clear();
    this.lag = Infinity; // the next message may come from another kernel
  }

  /** @param {Step} step @returns {string[]} the ids of the clocks that it changed */
  apply({ clocks = {}, now }) {
    if (now !== undefined) this.lag = Math.min(this.lag, performance.now() / 1000 - now);
    const since = now ?? this.#kernelNow();
    for (const [id, { elapsed, running }] of Object.entries(clocks)) this.clocks.set(id, { since, seconds: elapsed, running });
    return Object.keys(clocks);
  }

  /** Stops all clocks. @returns {string[]} the ids of the clocks that were running */
  freeze() {
    const running = [...this.clocks].filter(([, clock]) => clock.running).map(([id]) => id);
    for (const id of running) this.clocks.set(id, { since: 0, seconds: this.seconds(id), running: false });
    return running;
  }

  /** @param {string} id @returns {number} */
  seconds(id) {
    const clock = this.clocks.get(id);
    if (!clock) return 0;
    return clock.running ? clock.seconds + Math.max(0, this.#kernelNow() - clock.since) : clock.seconds;
  }

  get areRunning() {
    for (const { running } of this.clocks.values()) if (running) return true;
    return false;
  }

  #kernelNow() {
    return performance.now() / 1000 - (this.lag === Infinity ? 0 : this.lag);
  }
}

/** Formats a duration as render/html_output/card.py does, which shows none of less than a tenth of a second; tenths are enough while it runs. @param {number} seconds @param {boolean} running */
export function formatDuration(seconds, running) {
  if (seconds < 0.1) return "";
  if (seconds < 9.995) return `${seconds.toFixed(running ? 1 : 2)} s`;
  const whole = Math.round(seconds);
  return whole < 60 ? `${whole} s` : `${Math.floor(whole / 60)} min ${String(whole % 60).padStart(2, "0")} s`;
}
