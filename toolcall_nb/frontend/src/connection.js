import { changeOutputs } from "./notebook_outputs.js";
import { warn } from "./protocol.js";

const PROBE_MS = 200;
const SEEK_VIEW_MS = 3000;
const QUIET_MS = 10_000;
const GOING = ["restarting", "autorestarting", "terminating", "dead"]; // states of a kernel, in JupyterLab

/** @typedef {import("./protocol.js").Model} Model @typedef {import("./live_run.js").LiveRun} LiveRun */

/** The connection of one run to its kernel, through an anywidget model. Notices when the kernel is away or gone. */
export class Connection {
  /** @param {Model} model @param {LiveRun} run */
  constructor(model, run) {
    this.model = model;
    this.run = run;
    this.isOpen = true;
    this.quietTimer = 0;
    /** @type {(() => void)[]} */
    this.disconnectors = [];
  }

  /** The widget's id, by which the notebook knows its view. */
  get widgetId() {
    return this.model.get("snapshot").model;
  }

  get widgetManager() {
    return this.model.widget_manager;
  }

  /** Begins to listen. Called once the run has taken its snapshot, which tells the widget's id. */
  open() {
    this.model.on("msg:custom", (message) => this.run.receive(message));
    this.model.on("comm:close", () => this.run.end("closed")); // closed by somebody: a kernel that dies does not say so
    this.model.on("comm_live_update", () => this.#probe());
    this.model.on("change:snapshot", () => this.run.receive({ ...this.model.get("snapshot"), type: "state" }));
    this.#watchNotebook(this.widgetManager?.context?.sessionContext);
    this.#receiveEarly().finally(() => this.sync());
    this.#seekView();
  }

  close() {
    this.isOpen = false;
    for (const disconnect of this.disconnectors.splice(0)) disconnect();
  }

  /** @param {object} message */
  send(message) {
    if (!this.isOpen) return;
    try {
      this.model.send(message);
    } catch (error) {
      warn(error);
      this.run.end("lost"); // only a comm that was disposed of throws
    }
  }

  /** Tells the kernel which step came last. A kernel that is ahead answers with everything. */
  sync() {
    this.send({ type: "sync", seq: this.run.seq });
  }

  /**
   * Asks again when nothing has come for a while, and after twice that time again. A server drops messages that come
   * too fast, and the last one may be among them.
   */
  listen(wait = QUIET_MS) {
    clearTimeout(this.quietTimer);
    if (this.run.done || !this.isOpen || !this.run.views.size) return;
    this.quietTimer = window.setTimeout(() => {
      this.send({ type: "here", seq: this.run.seq });
      this.listen(2 * wait);
    }, wait);
  }

  /**
   * Takes the kernel's messages directly from the comm. anywidget 0.11 (packages/anywidget/src/runtime.ts) never passes
   * any on if this module was not loaded within two seconds, and in a busy page the run would stand still.
   */
  async #receiveEarly() {
    try {
      const widget = await this.widgetManager?.get_model?.(this.widgetId);
      widget?.comm?.on_msg?.((/** @type {any} */ message) => {
        const { method, content } = message.content.data;
        if (method === "custom") this.run.receive(content);
        else return widget._handle_comm_msg(message);
      });
    } catch (error) {
      warn(error);
    }
  }

  /**
   * Draws the output again if it shows no view. JupyterLab (jupyterlab_widgets, WidgetRenderer.renderModel) waits two
   * seconds for a model; if the model comes just then, it says for good that there is none.
   */
  #seekView(tries = 3) {
    setTimeout(() => {
      if (this.run.viewsInPage.length || !this.isOpen) return;
      changeOutputs(this.widgetManager, this.widgetId, (output) => output);
      if (tries > 1) this.#seekView(tries - 1);
    }, SEEK_VIEW_MS);
  }

  /**
   * JupyterLab's notebook knows the state of its kernel; its widget models are told late, or never.
   *
   * @param {any} context an ISessionContext
   */
  #watchNotebook(context) {
    /** @param {string} name @param {(sender: any, change: any) => void} react */
    const watch = (name, react) => {
      context?.[name]?.connect(react);
      this.disconnectors.push(() => context?.[name]?.disconnect(react));
    };
    watch("connectionStatusChanged", (_, status) => this.#setConnected(status === "connected", context.session?.kernel));
    watch("statusChanged", (_, status) => GOING.includes(status) && this.#probe());
    watch("kernelChanged", () => this.#probe());
  }

  /** What is sent while a page is away does not reach it. @param {boolean} isConnected @param {any} kernel */
  #setConnected(isConnected, kernel) {
    const isBack = this.run.isAway && isConnected;
    this.run.isAway = !isConnected;
    this.run.touchViews();
    if (!isBack) return;
    this.sync();
    this.#recognise(kernel).catch(warn); // it may be away again before the answer
  }

  /** A kernel that was restarted meanwhile does not know this run. @param {any} kernel an IKernelConnection */
  async #recognise(kernel) {
    const { content } = await kernel.requestCommInfo({ target_name: "jupyter.widget" });
    if (content.status === "ok" && this.isOpen && !(this.widgetId in content.comms)) this.run.end("lost");
  }

  /** Finds out whether the kernel is there: if it has gone, its comm is disposed of soon, and sending throws. */
  #probe() {
    setTimeout(() => this.sync(), PROBE_MS);
  }
}
