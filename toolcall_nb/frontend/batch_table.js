// @ts-check
/**
 * The live table of a batch in a cell, as an ES module for anywidget. The kernel renders the HTML; this module places it.
 * What the reader has opened stays open, and a transcript is asked for when its row is opened.
 */
export default {
  /** @param {{model: any, el: HTMLElement}} context */
  render({ model, el }) {
    /** @type {Map<string, string>} the transcripts that were asked for, by row; empty until they come */
    const opened = new Map();
    const root = document.createElement("div");
    root.className = `${model.get("root")} tc-live`;
    const table = document.createElement("div");
    const bar = document.createElement("div");
    bar.className = "tc-run";
    const stop = document.createElement("button");
    stop.className = "tc-stop";
    stop.type = "button";
    stop.textContent = "Stop";
    stop.title = "Stop this batch; the runs that have ended are kept";
    stop.addEventListener("click", () => {
      stop.disabled = true;
      stop.textContent = "Stopping …";
      model.send({ type: "stop" });
    });
    bar.append(model.get("stop_hint") || stop); // a button whose click arrives too late is not shown
    root.append(bar, table);
    el.append(root);

    /** @param {HTMLDetailsElement} fold @param {string} html */
    const fill = (fold, html) => {
      const box = document.createElement("div");
      box.innerHTML = html;
      fold.append(box);
    };
    /** @param {string} html */
    const draw = (html) => {
      const focused = document.activeElement?.closest("details[data-row]")?.getAttribute("data-row");
      table.innerHTML = html;
      for (const fold of /** @type {NodeListOf<HTMLDetailsElement>} */ (table.querySelectorAll("details[data-row]"))) {
        const row = fold.dataset.row ?? "";
        if (opened.has(row)) {
          fold.open = true;
          fill(fold, opened.get(row) ?? "");
        }
        if (row === focused) fold.querySelector("summary")?.focus({ preventScroll: true });
        fold.addEventListener("toggle", () => {
          if (!fold.open) opened.delete(row);
          else if (!opened.has(row)) {
            opened.set(row, "");
            model.send({ type: "open", row: Number(row) });
          }
        });
      }
    };
    /** @param {{type: string, html: string, row?: number}} message */
    const receive = (message) => {
      if (message.type === "table") draw(message.html);
      if (message.type === "transcript" && opened.has(String(message.row))) {
        opened.set(String(message.row), message.html);
        const fold = table.querySelector(`details[data-row="${message.row}"]`);
        if (fold instanceof HTMLDetailsElement) {
          fold.querySelectorAll(":scope > div").forEach((old) => old.remove());
          fill(fold, message.html);
        }
      }
    };
    model.on("msg:custom", receive);
    draw(model.get("snapshot"));
    return () => model.off("msg:custom", receive);
  },
};
