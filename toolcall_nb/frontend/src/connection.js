import { changeOutputs, replaceOutput } from "./notebook_outputs.js";
import { warn } from "./protocol.js";

const PROBE_MS = 200;
const SEEK_VIEW_MS = 3000;
const QUIET_MS = 10_000;
const GOING = ["restarting", "autorestarting", "terminating", "dead"]; // JupyterLab's names of a kernel's states

/** @typedef {import("./protocol.js").Model} Model @typedef {import("./live_run.js").LiveRun} LiveRun */

/** The connection of one run to its kernel, through an anywidget model. Notices when the kernel is away or gone. */
export class Connection {
  /** @param {Model} model @param {LiveRun} run */
  constructor(model, run) {
    this.model = model;
    this.run = run;
    this.isOpen = true;
    this.quietTimer = 0;
    /** @type {BroadcastChannel | null} to a kernel in this browser, which gets the model's messages too late */
    this.channel = null;
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

  /** Starts listening. Called once the run has applied its snapshot, which contains the widget's id. */
  open() {
    const { channel } = this.model.get("snapshot");
    this.channel = channel ? new BroadcastChannel(channel) : null;
    this.model.on("msg:custom", (message) => this.run.receive(message));
    this.model.on("comm:close", () => this.run.end("closed")); // closed on purpose: a kernel that dies sends no such event
    this.model.on("comm_live_update", () => this.#probe());
    this.model.on("change:snapshot", () => this.run.receive({ ...this.model.get("snapshot"), type: "state" }));
    this.#watchNotebook(this.widgetManager?.context?.sessionContext);
    this.#receiveEarly().finally(() => this.sync());
    this.#seekView();
  }

  close() {
    this.isOpen = false;
    this.channel?.close();
    for (const disconnect of this.disconnectors.splice(0)) disconnect();
  }

  /** @param {object} message */
  send(message) {
    if (!this.isOpen) return;
    try {
      this.model.send(message);
      this.channel?.postMessage(message);
    } catch (error) {
      warn(error);
      this.run.end("lost"); // only a disposed comm throws
    }
  }

  /** Replaces the run's view by a static output. @param {string} model the widget's id @param {Record<string, string>} data */
  replaceOutput(model, data) {
    replaceOutput(this.widgetManager, model, this.model.get("snapshot").outputs ?? [], data);
  }

  /** Tells the kernel the number of the latest step. A kernel that is ahead answers with everything. */
  sync() {
    this.send({ type: "sync", seq: this.run.seq });
  }

  /**
   * Asks again when no message has arrived for a while, at intervals that double. A server drops messages that arrive
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
   * any on if this module was not loaded within two seconds, so in a busy page the run would never be updated.
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
   * seconds for a model; if the model arrives just then, it shows "model not found" for good.
   */
  #seekView(tries = 3) {
    setTimeout(() => {
      if (this.run.viewsInPage.length || !this.isOpen) return;
      changeOutputs(this.widgetManager, this.widgetId, (output) => output);
      if (tries > 1) this.#seekView(tries - 1);
    }, SEEK_VIEW_MS);
  }

  /**
   * Watches the kernel's state through JupyterLab's notebook, since widget models are notified late or never.
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

  /** Handles a lost or restored connection; messages that are sent in between do not arrive. @param {boolean} isConnected @param {any} kernel */
  #setConnected(isConnected, kernel) {
    const isBack = this.run.isAway && isConnected;
    this.run.isAway = !isConnected;
    this.run.touchViews();
    if (!isBack) return;
    this.sync();
    this.#recognise(kernel).catch(warn); // the connection may be lost again before the answer
  }

  /** Ends the run if the kernel does not know it, as after a restart. @param {any} kernel an IKernelConnection */
  async #recognise(kernel) {
    const { content } = await kernel.requestCommInfo({ target_name: "jupyter.widget" });
    if (content.status === "ok" && this.isOpen && !(this.widgetId in content.comms)) this.run.end("lost");
  }

  /** Checks whether the kernel still exists: if not, its comm is disposed soon, and sending throws. */
  #probe() {
    setTimeout(() => this.sync(), PROBE_MS);
  }
}
