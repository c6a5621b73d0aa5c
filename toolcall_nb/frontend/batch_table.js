// @ts-check
const REPLACED_WITHIN_MS = 3000;

/**
 * The live table of a batch in a cell, as an ES module for anywidget. The kernel renders the HTML; this module places it.
 * What the reader has opened stays open, and a transcript is asked for when its row is opened.
 */
export default {
  /** @param {{model: any, el: HTMLElement}} context */
  render({ model, el }) {
    /** @type {Map<string, HTMLElement>} boxes of the transcripts that were asked for, by row; empty until they come */
    const opened = new Map();
    const root = document.createElement("div");
    root.className = `${model.get("root")} tc-live tc-view`;
    const table = document.createElement("div");
    const bar = document.createElement("div");
    bar.className = "tc-run";
    const stop = document.createElement("button");
    stop.className = "tc-stop";
    stop.type = "button";
    stop.textContent = "Stop";
    stop.title = "Stop this batch; the runs that have ended are kept";
    stop.addEventListener("click", () => {
      if (stop.ariaDisabled) return;
      stop.ariaDisabled = "true"; // a button that is really disabled would lose the focus
      stop.textContent = "Stopping …";
      model.send({ type: "stop" });
    });
    bar.append(model.get("stop_hint") || stop); // a button whose click arrives too late is not shown
    const voice = document.createElement("div");
    voice.className = "tc-voice";
    voice.setAttribute("role", "status");
    bar.append(voice);
    root.append(bar, table);
    el.append(root);

    /** @param {string} html */
    const draw = (html) => {
      const focused = document.activeElement;
      const focusedRow = focused?.closest("details[data-row]")?.getAttribute("data-row");
      table.innerHTML = html;
      for (const fold of /** @type {NodeListOf<HTMLDetailsElement>} */ (table.querySelectorAll("details[data-row]"))) {
        const row = fold.dataset.row ?? "";
        if (opened.has(row)) {
          fold.open = true;
          fold.append(opened.get(row) ?? "");
        }
        const mine = focused instanceof HTMLElement && fold.contains(focused) ? focused : fold.querySelector("summary");
        if (row === focusedRow) mine?.focus({ preventScroll: true });
        fold.addEventListener("toggle", () => {
          if (!fold.open) {
            opened.get(row)?.remove();
            opened.delete(row);
          } else if (!opened.has(row)) {
            const box = document.createElement("div");
            opened.set(row, box);
            fold.append(box);
            model.send({ type: "open", row: Number(row) });
          }
        });
      }
      const isOver = table.querySelector("tbody") && !table.querySelector("tbody :is(.tc-queued, .tc-running)");
      if (isOver) voice.textContent = table.querySelector(".tc-counts")?.textContent ?? "";
    };
    /** @param {{type: string, html: string, row?: number}} message */
    const receive = (message) => {
      if (message.type === "table") draw(message.html);
      const box = message.type === "transcript" && opened.get(String(message.row));
      if (box) box.innerHTML = message.html;
    };
    /** @type {EventTarget | null} the last element of the page that got the focus */
    let focused = null;
    /** @type {Element | null} JupyterLab's outputs of the cell */
    let outputs = null;
    /** @param {FocusEvent} event */
    const noteFocus = (event) => {
      focused = event.target;
      outputs = root.closest(".jp-OutputArea");
    };
    document.addEventListener("focusin", noteFocus);
    model.on("msg:custom", receive);
    draw(model.get("snapshot"));
    return () => {
      model.off("msg:custom", receive);
      document.removeEventListener("focusin", noteFocus);
      if (outputs && focused instanceof Node && root.contains(focused)) focusStatic(outputs, root);
    };
  },
};

/** Gives the focus to the static table that replaces the live one, once it is there. @param {Element} outputs @param {Element} live */
function focusStatic(outputs, live) {
  const look = () => {
    const table = [...outputs.querySelectorAll(".tc:has(.tc-batch)")].find((each) => each !== live);
    if (!(table instanceof HTMLElement)) return;
    watch.disconnect();
    table.tabIndex = -1; // so that it can have the focus, but is no stop of the Tab key
    if (document.activeElement === document.body) table.focus({ preventScroll: true });
  };
  const watch = new MutationObserver(look);
  watch.observe(outputs, { childList: true, subtree: true });
  setTimeout(() => watch.disconnect(), REPLACED_WITHIN_MS);
  look();
}
