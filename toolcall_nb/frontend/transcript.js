// @ts-check
/**
 * The live transcript in a cell: one ES module for anywidget (https://anywidget.dev/en/afm/), no dependencies. It is
 * one file because anywidget takes one and there is no bundler; its parts are parted by rules.
 *
 * The kernel renders; this module only places what it is sent. A model keeps one document, a tree of nodes that
 * each have an HTML string; a view projects it into the DOM, at most once a frame. So a second view needs
 * nothing from the kernel, and a hidden one costs nothing.
 *
 * What belongs to the reader is never overwritten: selection, focus, scroll, and each <details> that the reader
 * has opened or closed.
 *
 * kernel -> page   patches  {seq, patches, clocks?, asks?, status?, info?, foot?, say?, done?}   the next step
 *                  state    {seq, patches, opened, clocks, asks, status, info, foot, say, done}  everything, for who asked
 *                  final    {model, bundle}  the static output, for a page that it did not reach
 * page -> kernel   sync {seq}, open {node, open}, answer {approval, approved, text, scope, seen, unread? | reason}, stop, final,
 *                  pace {seconds}  no more often than this, please: drawing takes long
 *                  here {seq}  nothing came for a while: what came last, or the end, may have been lost
 *
 * The same as `state` is in the synced trait `snapshot`, from which the page begins after a reload. Such a page
 * does not know the output that the kernel then updates, so it asks for the static form and puts it in place.
 *
 * A page that has lost its kernel says so, and leaves what it knows as a static output: a saved view without its
 * model would show nothing.
 */

/**
 * @typedef {[string, string, string | null, string]} Insert  id, parent, before, html
 * @typedef {[string, number, string, number?]} Splice  id, start, text, deleted (UTF-16 units)
 * @typedef {[string]} Remove  id
 * @typedef {Insert | Splice | Remove} Patch
 * @typedef {{elapsed: number, running: boolean}} Clock  seconds; a running one goes on in the page
 * @typedef {{approval: string, name: string, text: string, lines: number, hidden?: string, invisible?: boolean,
 *            problem?: string, refused?: number}} Ask
 *            a person is asked about a call; ``text`` is its arguments as JSON, ``lines`` how many the card shows of them,
 *            ``hidden`` what it does not show, ``invisible`` that characters of them are written out, ``problem`` what
 *            was wrong with the last answer
 * @typedef {{seq: number, patches: Patch[], opened?: Record<string, boolean>, clocks?: Record<string, Clock>, now?: number,
 *            asks?: Record<string, Ask>, status?: string, info?: string, foot?: string, say?: string[],
 *            done?: boolean}} Step  ``now`` is the kernel's clock when it told of ``clocks``; ``foot`` is the HTML that takes the
 *            place of ``info`` at the end
 * @typedef {{id: string, parent: string, html: string, children: string[], birth: number}} DocNode
 * @typedef {{get(name: string): any, on(name: string, callback: (...args: any[]) => void): void,
 *            send(content: object): void, widget_manager?: any}} Model  its ``snapshot`` is a Step, and names the model: ``model``
 */

const ROOT = "";
const TAKEN = "fold usage"; // runs/request_details.py
const CARD = /^m\d+\.p\d+/; // render/html_output/card.py
const ROOT_CLASS = "tc mathjax_ignore tex2jax_ignore"; // render/html_output/page.py
const RUN_CLASS = "tc-run mathjax_ignore tex2jax_ignore"; // notebook/faces.py
const SYNC_AGAIN_MS = 5000;
const TICK_MS = 100;
const QUICK_MS = 40; // the kernel's own pace
const SLOWEST_MS = 1280;
const HIDDEN_MS = 5000; // a step that waited so long waited for its page to be looked at
const TOGETHER = 64; // so many children of a node stand side by side; those that follow, in groups of as many
const GROUPED = ".tc, .tc-said, .tc-text";
const PROBE_MS = 200;
const SETTLE_MS = 500;
const SEEK_MS = 3000;
const AWAY = "Not connected to the kernel: this may be old";
const LOST = "Cut off: the kernel is gone";
const CLOSED = "Cut off: this view was closed before the end";
const QUIET_MS = 10_000;
const SPEAK_MS = 100; // a screen reader hears what changes in a place that it knows, not what comes with the place
const SENTENCES = ". ";
const GOING = ["restarting", "autorestarting", "terminating", "dead"]; // of a kernel, in JupyterLab
const GOING_ON = ["tc-input-streaming", "tc-queued", "tc-running"]; // render/content.py
const OPEN = [...GOING_ON, "tc-approval-requested", "tc-approval-responded"];
const LINES = "p, pre, li, tr, summary, blockquote, h1, h2, h3, h4, h5, h6, .tc-label"; // in plain text, lines of their own
const WIDGET_VIEW = "application/vnd.jupyter.widget-view+json";

// The document ------------------------------------------------------------------------------------------------

/** The tree of nodes, without any DOM. Throws on a patch that does not fit: the page then asks for everything. */
class Doc {
  constructor() {
    /** @type {Map<string, DocNode>} */
    this.nodes = new Map([[ROOT, { id: ROOT, parent: ROOT, html: "", children: [], birth: 0 }]]);
    this.births = 0; // of nodes so far: one that comes again, perhaps elsewhere, has another number
  }

  /** @param {string} id @returns {DocNode} */
  node(id) {
    const node = this.nodes.get(id);
    if (!node) throw new Error(`There is no node ${JSON.stringify(id)}.`);
    return node;
  }

  /** @param {Patch} patch @returns {string[]} the nodes that it touched */
  apply(patch) {
    const [id, second] = patch;
    if (typeof second === "string") return this.#insert(/** @type {Insert} */ (patch));
    if (typeof second === "number") return this.#splice(/** @type {Splice} */ (patch));
    return this.#remove(id);
  }

  /** @param {Splice} patch */
  #splice([id, start, text, deleted = 0]) {
    const node = this.node(id);
    node.html = node.html.slice(0, start) + text + node.html.slice(start + deleted);
    return [id];
  }

  /** @param {Insert} patch */
  #insert([id, parentId, before, html]) {
    const parent = this.node(parentId);
    const gone = this.nodes.has(id) ? this.#remove(id) : [];
    const place = before === null ? parent.children.length : parent.children.indexOf(before);
    if (place < 0) throw new Error(`${JSON.stringify(before)} is not in ${JSON.stringify(parentId)}.`);
    parent.children.splice(place, 0, id);
    this.nodes.set(id, { id, parent: parentId, html, children: [], birth: ++this.births });
    return [...gone, id];
  }

  /** @param {string} id @returns {string[]} */
  #remove(id) {
    const node = this.node(id);
    const siblings = this.node(node.parent).children;
    siblings.splice(siblings.indexOf(id), 1);
    const gone = this.subtree(id);
    for (const each of gone) this.nodes.delete(each);
    return gone;
  }

  /** @param {string} id @returns {string[]} the node and all below, parents first */
  subtree(id) {
    return [id, ...this.node(id).children.flatMap((child) => this.subtree(child))];
  }
}

// The model's side --------------------------------------------------------------------------------------------

/** What one page knows of one run. Lives as long as the widget's model. */
class Session {
  constructor() {
    this.doc = new Doc();
    this.seq = -1;
    this.status = "";
    this.info = "";
    this.foot = "";
    this.done = false;
    this.restored = false;
    this.away = false; // the page is not connected to the kernel
    this.cut = false; // the kernel has gone before the end
    /** @type {Map<string, {since: number, seconds: number, running: boolean}>} ``since`` by the kernel's clock, in seconds */
    this.clocks = new Map();
    this.lag = Infinity; // of this page's clock behind the kernel's: the least of what was seen, since messages may wait
    this.quiet = 0;
    /** @type {Map<string, boolean>} what the reader opened and closed, by node */
    this.choices = new Map();
    /** @type {Record<string, Ask>} what a person is asked, by node: all of it each time */
    this.asks = {};
    /** @type {Set<View>} */
    this.views = new Set();
    this.said = ""; // last, aloud
    this.unsaid = ""; // of it, what no view was there to say
    this.askedAt = -Infinity;
    this.delay = 0; // how long steps wait until they are seen, on average
    this.pace = QUICK_MS;
    /** @type {Model | null} */
    this.model = null;
    /** @type {(() => void)[]} */
    this.watches = [];
  }

  /** @param {Model} model */
  attach(model) {
    this.model = model;
    model.on("msg:custom", (message) => this.receive(message));
    model.on("comm:close", () => this.#lost(CLOSED)); // by somebody: a kernel that goes does not say so
    model.on("comm_live_update", () => this.#probe());
    model.on("change:snapshot", () => this.receive({ ...model.get("snapshot"), type: "state" })); // asked for by a page that is back
    this.#watch(model.widget_manager?.context?.sessionContext);
    const snapshot = model.get("snapshot");
    this.restored = snapshot.seq > 0;
    this.#restart(snapshot);
    this.#hear(model, snapshot.model).finally(() => this.#sync());
    this.#seekView();
  }

  /**
   * Take the kernel's messages from where they arrive. anywidget (0.11, packages/anywidget/src/runtime.ts) passes none
   * on for good, where this module was not there within two seconds: in a page that was busy the run would stand still.
   *
   * @param {Model} model @param {string} name
   */
  async #hear(model, name) {
    try {
      const widget = await model.widget_manager?.get_model?.(name);
      widget?.comm?.on_msg?.((/** @type {any} */ message) => {
        const { method, content } = message.content.data;
        if (method === "custom") this.receive(content);
        else return widget._handle_comm_msg(message);
      });
    } catch (error) {
      console.warn("[toolcall_nb]", error);
    }
  }

  /**
   * JupyterLab (jupyterlab_widgets, WidgetRenderer.renderModel) waits two seconds for a model; where it came just then,
   * it says for good that there is none, even over a view. So an output that should show this run is drawn again.
   */
  #seekView(tries = 3) {
    setTimeout(() => {
      if (this.#shown.length || !this.model) return;
      changeOutputs(this.model.widget_manager, this.model.get("snapshot").model, (output) => output);
      if (tries > 1) this.#seekView(tries - 1);
    }, SEEK_MS);
  }

  /**
   * A notebook of JupyterLab knows how it stands with its kernel; its models are told late, or never.
   *
   * @param {any} context an ISessionContext
   */
  #watch(context) {
    /** @param {string} name @param {(sender: any, change: any) => void} see */
    const watch = (name, see) => {
      context?.[name]?.connect(see);
      this.watches.push(() => context?.[name]?.disconnect(see));
    };
    watch("connectionStatusChanged", (_, status) => this.#connect(status === "connected", context.session?.kernel));
    watch("statusChanged", (_, status) => GOING.includes(status) && this.#probe());
    watch("kernelChanged", () => this.#probe());
  }

  /** What is sent while a page is away passes it by. @param {boolean} isConnected @param {any} kernel */
  #connect(isConnected, kernel) {
    const isBack = this.away && isConnected;
    this.away = !isConnected;
    for (const view of this.views) view.touch([]);
    if (!isBack) return;
    this.#sync();
    this.#recognise(kernel).catch((error) => console.warn("[toolcall_nb]", error)); // it was away again before the answer
  }

  /** A kernel that was restarted meanwhile does not know this run, and answers nothing. @param {any} kernel an IKernelConnection */
  async #recognise(kernel) {
    const { content } = await kernel.requestCommInfo({ target_name: "jupyter.widget" });
    if (content.status === "ok" && !(this.model?.get("snapshot").model in content.comms)) this.#lost();
  }

  /** Is the kernel there? If it is gone, the comm will have been disposed of by then: see #send. */
  #probe() {
    setTimeout(() => this.#sync(), PROBE_MS);
  }

  /** A kernel that is ahead answers with everything. */
  #sync() {
    this.#send({ type: "sync", seq: this.seq });
  }

  /** @param {any} message */
  receive(message) {
    if (message.type === "patches") this.#advance(message);
    else if (message.type === "state" && (message.seq > this.seq || this.askedAt > 0)) this.#restart(message);
    else if (message.type === "final") this.#settle(message);
    this.#listen();
  }

  /** A server drops what comes too fast, also the end: who has heard nothing says how far it is. After twice the time again. */
  #listen(wait = QUIET_MS) {
    clearTimeout(this.quiet);
    if (this.done || !this.model || !this.views.size) return;
    this.quiet = window.setTimeout(() => {
      this.#send({ type: "here", seq: this.seq });
      this.#listen(2 * wait);
    }, wait);
  }

  /** @param {Step} step */
  #advance(step) {
    if (step.seq <= this.seq) return;
    if (step.seq !== this.seq + 1) return this.#ask();
    try {
      const touched = step.patches.flatMap((patch) => this.doc.apply(patch));
      this.seq = step.seq;
      this.#take(step);
      for (const view of this.views) view.touch(touched);
      if (this.done) for (const view of this.views) view.draw(); // the static form may come before the next frame
      this.#announce(step.say ?? []);
    } catch (error) {
      console.warn("[toolcall_nb]", error);
      this.#ask();
    }
  }

  /** @param {Step} state */
  #restart(state) {
    const before = [...this.doc.nodes.keys()];
    this.doc = new Doc();
    for (const patch of state.patches) this.doc.apply(patch);
    this.seq = state.seq;
    this.askedAt = -Infinity;
    for (const [id, open] of Object.entries(state.opened ?? {})) this.choices.set(id, open);
    this.clocks.clear();
    this.lag = Infinity; // another kernel's, perhaps
    this.#take(state);
    for (const view of this.views) view.touch([...before, ...this.doc.nodes.keys()]);
    if (state.say?.join(SENTENCES) !== this.said) this.#announce(state.say ?? []);
  }

  /** @param {Step} step */
  #take(step) {
    if (step.status !== undefined) this.status = step.status;
    if (step.info !== undefined) this.info = step.info;
    if (step.foot !== undefined) this.foot = step.foot;
    if (step.done !== undefined) this.done = step.done;
    if (step.asks !== undefined) this.asks = step.asks;
    if (step.now !== undefined) this.lag = Math.min(this.lag, performance.now() / 1000 - step.now);
    const since = step.now ?? this.#now();
    for (const [id, clock] of Object.entries(step.clocks ?? {})) {
      this.#setClock(id, { since, seconds: clock.elapsed, running: clock.running });
    }
    if (!this.done) return;
    this.#freezeClocks();
    this.#seekFinal();
  }

  /** The static form takes the place of each view; one that stays was not there when that was told, or was away. */
  #seekFinal() {
    setTimeout(() => this.done && this.views.size && this.#send({ type: "final" }), SETTLE_MS);
  }

  /** @param {{model: string, bundle: Record<string, string>}} final */
  #settle({ model, bundle }) {
    if (this.model) replaceOutput(this.model.widget_manager, model, bundle);
  }

  /** A message was missed: ask for everything, and not again at each message that follows. */
  #ask() {
    const now = performance.now();
    if (now - this.askedAt < SYNC_AGAIN_MS) return;
    this.askedAt = now;
    this.status = "Catching up…";
    this.#sync();
    for (const view of this.views) view.touch([]);
  }

  /** The kernel has gone: in mid-run, nothing ticks on as if it still ran; and what is shown stays in the notebook. */
  #lost(status = LOST) {
    const { model } = this;
    if (!model) return;
    this.model = null;
    for (const stop of this.watches.splice(0)) stop();
    if (!this.done) {
      this.done = true;
      this.cut = status === LOST;
      this.asks = {};
      this.status = status;
      this.#freezeClocks();
      for (const view of this.views) view.touch([]);
    }
    const view = new View(this, element("div", ""));
    replaceOutput(model.widget_manager, model.get("snapshot").model, view.still(model.get("_css")));
    view.close();
  }

  /** @param {string} id @param {{since: number, seconds: number, running: boolean}} clock */
  #setClock(id, clock) {
    this.clocks.set(id, clock);
    for (const view of this.views) view.stale.add(id);
  }

  #freezeClocks() {
    for (const [id, clock] of this.clocks) {
      if (clock.running) this.#setClock(id, { since: 0, seconds: this.seconds(id), running: false });
    }
  }

  /** @param {string} id @returns {number} */
  seconds(id) {
    const clock = this.clocks.get(id);
    if (!clock) return 0;
    return clock.running ? clock.seconds + Math.max(0, this.#now() - clock.since) : clock.seconds;
  }

  /** What the kernel's clock says. */
  #now() {
    return performance.now() / 1000 - (this.lag === Infinity ? 0 : this.lag);
  }

  get ticking() {
    for (const { running } of this.clocks.values()) if (running) return true;
    return false;
  }

  /** @param {string[]} texts */
  #announce(texts) {
    if (texts.length) this.said = this.unsaid = texts.join(SENTENCES);
    this.#speak();
  }

  /** The views that are in the page: JupyterLab may take one out of it and keep it. */
  get #shown() {
    return [...this.views].filter((view) => view.live.isConnected);
  }

  /** Only the first view speaks: two of them would say everything twice. */
  #speak() {
    const [first] = this.#shown;
    if (!first || !this.unsaid) return;
    first.announce(this.unsaid);
    this.unsaid = "";
  }

  /** @param {string} node @param {boolean} open */
  chose(node, open) {
    this.choices.set(node, open);
    this.#send({ type: "open", node, open });
  }

  /** @param {object} answer */
  answer(answer) {
    this.#send({ type: "answer", ...answer });
  }

  stop() {
    this.status = "Stopping…";
    this.#send({ type: "stop" });
    for (const view of this.views) view.touch([]);
  }

  /** @param {object} message */
  #send(message) {
    try {
      this.model?.send(message);
    } catch (error) {
      console.warn("[toolcall_nb]", error);
      this.#lost(); // only a comm that was disposed of throws
    }
  }

  /**
   * Steps were seen so late. A page that keeps up shows them within a frame or two; one that does not is left half of
   * its time for its reader.
   *
   * @param {number} delay
   */
  seen(delay) {
    if (document.hidden || delay > HIDDEN_MS) return;
    this.delay += (delay - this.delay) / 4;
    const wanted = Math.min(SLOWEST_MS, QUICK_MS * 2 ** Math.max(0, Math.ceil(Math.log2((2 * this.delay) / QUICK_MS)) - 1));
    if (this.done || wanted === this.pace || (wanted < this.pace && this.delay * 3 > this.pace)) return;
    this.pace = wanted;
    this.#send({ type: "pace", seconds: wanted / 1000 });
  }

  /** @param {HTMLElement} host */
  open(host) {
    const view = new View(this, host);
    this.views.add(view);
    this.#listen();
    if (this.done) this.#seekFinal();
    setTimeout(() => this.#speak(), SPEAK_MS);
    return () => {
      this.views.delete(view);
      this.#listen();
      view.close();
    };
  }
}

// One view ----------------------------------------------------------------------------------------------------

/** @template {keyof HTMLElementTagNameMap} K @param {K} tag @param {string} name @param {string} [text] */
function element(tag, name, text = "") {
  return Object.assign(document.createElement(tag), { className: name, textContent: text });
}

/** @param {Element} before @param {Element} mine */
const areCalls = (before, mine) => [before, mine].every((each) => each.classList.contains("tc-call"));

/**
 * Whether a row can be parted between these two and nothing moves: what begins a group keeps its margin above to
 * itself, so it must have none.
 *
 * @param {Element} before
 * @param {Element} mine
 */
const canPart = (before, mine) => areCalls(before, mine) || mine.matches(".tc-text, .tc-turn, p");

class View {
  /** @param {Session} session @param {HTMLElement} host */
  constructor(session, host) {
    this.session = session;
    /** @type {Map<string, Element>} */
    this.elements = new Map();
    /** @type {WeakMap<Node, string>} and back: a morph of the shell around such an element leaves it alone */
    this.owned = new WeakMap();
    /** @type {WeakMap<Element, boolean>} what each <details> was set to by us; else it was the reader */
    this.expected = new WeakMap();
    /** @type {WeakSet<Element>} each <details> that the reader has opened or closed */
    this.readers = new WeakSet();
    /** @type {Map<string, Panel>} */
    this.panels = new Map();
    /** @type {Set<string>} */
    this.touched = new Set();
    /** @type {Map<string, number>} of the nodes whose place is known */
    this.births = new Map();
    /** @type {WeakSet<Element>} what only parts a long row of nodes, so that a change at its end is laid out alone */
    this.groups = new WeakSet();
    this.sizes = new ResizeObserver((entries) => entries.forEach(({ target }) => this.#leave(target)));
    /** @type {Set<string>} the clocks whose time is to be written once, beside those that run */
    this.stale = new Set();
    this.frame = 0;
    this.timer = 0;
    /** @type {Set<Element>} what the reader, or anything else, has scrolled */
    this.scrolled = new Set();
    /** @type {Left | null} where the reader was, once nothing more comes */
    this.left = null;
    this.noteSelection = () => this.#remember();
    this.#build(host);
    this.touch([...session.doc.nodes.keys()]);
    this.draw();
  }

  /** @param {HTMLElement} host */
  #build(host) {
    this.root = element("div", ROOT_CLASS);
    /** @type {Element} */
    this.info = element("span", "tc-foot-info");
    this.taken = ""; // the HTML that stands in its place
    this.status = element("span", "tc-foot-status");
    this.time = element("span", "tc-foot-time");
    this.button = element("button", "tc-stop", "Stop");
    this.button.type = "button";
    this.button.title = "Stop this run";
    this.button.addEventListener("click", () => this.session.stop());
    this.foot = element("div", "tc-foot");
    this.foot.append(this.info, this.status, this.time, this.button);
    this.voice = element("div", "tc-voice");
    this.voice.setAttribute("role", "status");
    this.voice.setAttribute("aria-live", "polite");
    this.live = element("div", RUN_CLASS);
    this.live.append(this.root, this.foot, this.voice);
    this.live.addEventListener("toggle", (event) => this.#toggled(event), true); // it does not bubble
    this.live.addEventListener("scroll", (event) => this.#noteScroll(event.target), true); // nor does this
    document.addEventListener("selectionchange", this.noteSelection);
    this.elements.set(ROOT, this.root);
    host.append(this.live);
  }

  close() {
    cancelAnimationFrame(this.frame);
    clearInterval(this.timer);
    this.sizes.disconnect();
    document.removeEventListener("selectionchange", this.noteSelection);
    if (this.left) bringBack(this.left, this.root);
    this.live.remove();
  }

  /** @param {EventTarget | null} target */
  #noteScroll(target) {
    if (target instanceof Element) this.scrolled.add(target);
    this.#remember();
  }

  /** The static form is about to take this view's place. */
  #remember() {
    if (this.session.done && this.session.model && this.live.isConnected) this.left = leftBy(this.root, this.scrolled);
  }

  /** @param {string} text */
  announce(text) {
    this.voice.textContent = text;
  }

  /** @param {Iterable<string>} ids */
  touch(ids) {
    for (const id of ids) {
      this.touched.add(id);
      this.stale.add(CARD.exec(id)?.[0] ?? id);
    }
    if (this.frame) return;
    const since = performance.now();
    this.frame = requestAnimationFrame(() => {
      this.draw();
      setTimeout(() => this.session.seen(performance.now() - since)); // behind style and layout
    });
  }

  /** Bring what is in the page to what the document says. */
  draw() {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    const place = readersPlace(this.live, this.root);
    const ids = [...this.touched];
    this.touched.clear();
    for (const id of ids) if (!this.session.doc.nodes.has(id)) this.#drop(id);
    /** @type {Map<string, Set<string> | null>} which children of a node are to be placed; null: perhaps all */
    const unplaced = new Map();
    for (const id of ids) if (id !== ROOT && this.session.doc.nodes.has(id)) this.#show(id, unplaced);
    for (const [id, children] of unplaced) this.#arrange(id, children);
    this.#drawAsks();
    this.#drawFoot();
    if (this.session.cut) this.#closeCalls(OPEN, "interrupted", "Interrupted");
    else if (!this.session.model && this.session.done) this.#closeCalls(GOING_ON, "called", "Called");
    place?.keep();
    this.#remember();
    this.#tick();
    if (this.session.ticking && !this.timer) this.timer = window.setInterval(() => this.#tick(), TICK_MS);
  }

  /** Nobody knows how they would have ended. @param {string[]} open @param {string} state @param {string} word */
  #closeCalls(open, state, word) {
    for (const card of this.root.querySelectorAll(open.map((name) => `.${name}`).join())) {
      card.classList.remove(...open);
      card.classList.add(`tc-${state}`);
      const place = card.querySelector(".tc-state");
      if (place) setText(place, word);
    }
  }

  /** All that it shows, as an output that needs neither kernel nor script. @param {string} css */
  still(css) {
    for (const time of this.root.querySelectorAll(".tc-time")) time.textContent = ""; // the same each time, as in every saved output
    const line = [this.info.textContent, this.status.textContent].filter(Boolean).join(" · ");
    const foot = element("div", "tc-foot");
    foot.append(this.session.foot ? this.info : element("span", "tc-foot-info", line));
    const run = element("div", RUN_CLASS);
    run.append(element("style", "", css), this.root, foot);
    return { "text/html": run.outerHTML, "text/plain": `${lines(this.root)}\n\n${line}` };
  }

  #drawAsks() {
    const { asks, away } = this.session;
    for (const [id, panel] of this.panels) {
      if (asks[id]?.approval === panel.ask.approval && this.elements.get(id)?.contains(panel.root)) continue;
      const isLeft = panel.root.contains(document.activeElement);
      panel.close();
      this.panels.delete(id);
      if (isLeft) this.elements.get(id)?.querySelector("summary")?.focus({ preventScroll: true });
    }
    for (const [id, ask] of Object.entries(asks)) {
      const card = this.elements.get(id);
      const panel = this.panels.get(id) ?? (card && this.#addPanel(id, ask, card));
      panel?.update(ask, away, this.#partsToRead(id));
    }
  }

  /** What has to be in view before a call is approved: its names and each line of its arguments. @param {string} id of its card */
  #partsToRead(id) {
    /** @type {Map<string, Element>} */
    const parts = new Map();
    for (const name of this.elements.get(id)?.querySelectorAll("summary > :is(.tc-name, .tc-tool)") ?? []) {
      parts.set(name.className, name);
    }
    for (const line of this.session.doc.nodes.get(`${id}.i`)?.children ?? []) {
      const element = this.elements.get(line);
      if (element) parts.set(line, element);
    }
    return parts;
  }

  /** @param {string} id @param {Ask} ask @param {Element} card */
  #addPanel(id, ask, card) {
    const panel = new Panel(ask, (answer) => this.session.answer(answer));
    this.owned.set(panel.root, id);
    this.panels.set(id, panel);
    card.append(panel.root);
    return panel;
  }

  /** The line; at the end the kernel's own HTML, which may fold what the run took. @param {string} info */
  #drawInfo(info) {
    const { foot, choices } = this.session;
    if (!foot) return setText(this.info, info);
    if (this.taken === foot) return;
    this.taken = foot;
    const fresh = parse(foot);
    if (fresh instanceof HTMLDetailsElement) {
      fresh.open = choices.get(TAKEN) ?? fresh.open;
      this.expected.set(fresh, fresh.open);
    }
    this.info.replaceWith(fresh);
    this.info = fresh;
  }

  #drawFoot() {
    const { info, status, done, restored, away } = this.session;
    const isLive = !done && !away;
    this.#drawInfo(info);
    const words = done && restored && !status ? "Back after a reload; %toolchat show saves it" : status;
    setText(this.status, away && !done ? AWAY : words);
    this.button.hidden = !isLive;
    this.foot.classList.toggle("tc-busy", isLive);
    this.root.classList.toggle("tc-live", isLive); // what moves: carets, spinners
  }

  #tick() {
    if (this.session.away) return; // the time at which it was left
    for (const [id, { running }] of this.session.clocks) {
      if (!running && !this.stale.has(id)) continue;
      const place = id === ROOT ? this.time : this.elements.get(id)?.querySelector(".tc-time");
      if (place) setText(place, duration(this.session.seconds(id), running));
    }
    this.stale.clear();
    if (!this.session.ticking) {
      clearInterval(this.timer);
      this.timer = 0;
    }
  }

  // Nodes

  /** @param {string} id */
  #drop(id) {
    const mine = this.elements.get(id);
    const group = mine?.parentElement;
    mine?.remove();
    if (group && this.groups.has(group) && !group.firstElementChild) group.remove();
    this.elements.delete(id);
    this.births.delete(id);
  }

  /**
   * Make the node's element what the document says, and note what has to be placed where.
   *
   * @param {string} id
   * @param {Map<string, Set<string> | null>} unplaced
   */
  #show(id, unplaced) {
    const node = this.session.doc.node(id);
    if (!this.elements.has(node.parent)) this.#show(node.parent, unplaced);
    const fresh = parse(node.html);
    const mine = this.elements.get(id);
    if (mine?.nodeName === fresh.nodeName) {
      this.#morph(mine, fresh);
    } else {
      this.#drop(id);
      this.#adopt(id, fresh);
    }
    if (this.births.get(id) !== node.birth) {
      if (!unplaced.has(node.parent)) unplaced.set(node.parent, new Set());
      unplaced.get(node.parent)?.add(id);
    }
    this.births.set(id, node.birth);
    if (node.children.length) unplaced.set(id, null); // its innermost element may be another now
  }

  /** @param {string} id @param {Element} fresh */
  #adopt(id, fresh) {
    const choice = this.session.choices.get(id);
    const first = detailsIn(fresh)[0];
    if (first && choice !== undefined) {
      first.open = choice;
      this.readers.add(first);
    }
    for (const details of detailsIn(fresh)) this.expected.set(details, details.open);
    this.elements.set(id, fresh);
    this.owned.set(fresh, id);
  }

  /**
   * Put the children of a node where they belong, from the first one on that is to be placed: most are new at the
   * end. Nothing is moved that is in its place: a moved element loses its scroll.
   *
   * @param {string} id
   * @param {Set<string> | null} unplaced
   */
  #arrange(id, unplaced) {
    const slot = this.#slot(id);
    const { children } = this.session.doc.node(id);
    let at = unplaced ? children.length : 0;
    for (let left = unplaced?.size ?? 0; left > 0 && at > 0; ) if (unplaced?.has(children[--at])) left--;
    let before = this.elements.get(children[at - 1]) ?? null;
    for (; at < children.length; at++) {
      const mine = this.elements.get(children[at]);
      if (!mine) continue;
      if (!this.#follows(mine, before, slot)) this.#put(mine, before, slot, id);
      before = mine;
    }
  }

  /** Whether it is in the slot, and behind that one. @param {Element} mine @param {Element | null} before @param {Element} slot */
  #follows(mine, before, slot) {
    const home = mine.parentElement;
    const group = home && this.groups.has(home) ? home : null;
    if ((group ?? mine).parentElement !== slot) return false;
    const sibling = mine.previousElementSibling ?? group?.previousElementSibling ?? null;
    return (sibling && this.groups.has(sibling) ? sibling.lastElementChild : sibling) === before;
  }

  /** @param {Element} mine @param {Element | null} before @param {Element} slot @param {string} id of the slot's node */
  #put(mine, before, slot, id) {
    if (!before) return slot.prepend(mine);
    const home = /** @type {Element} */ (before.parentElement);
    const isLast = !before.nextElementSibling && (home === slot || !home.nextElementSibling);
    const isFull = home.childElementCount >= TOGETHER * (canPart(before, mine) ? 1 : 4);
    if (!isLast || !isFull || !slot.matches(GROUPED)) return before.after(mine);
    const isJoined = areCalls(before, mine);
    const group = element("div", isJoined ? "tc-group tc-joined" : "tc-group");
    if (isJoined && this.groups.has(home)) home.classList.add("tc-joins");
    if (this.groups.has(home)) this.sizes.observe(home);
    this.groups.add(group);
    this.owned.set(group, id);
    slot.append(group);
    group.append(mine);
  }

  /** A group is full and was laid out: out of sight it costs nothing, and keeps its height. @param {Element} group */
  #leave(group) {
    if (!(group instanceof HTMLElement) || group.classList.contains("tc-far")) return;
    group.style.containIntrinsicBlockSize = `auto ${group.getBoundingClientRect().height}px`;
    group.classList.add("tc-far");
    this.sizes.unobserve(group);
  }

  /** Where the children of a node live: the innermost last element of its own HTML. @param {string} id */
  #slot(id) {
    let slot = /** @type {Element} */ (this.elements.get(id));
    if (id === ROOT) return slot;
    for (;;) {
      const own = [...slot.children].filter((child) => !this.owned.has(child));
      const last = own.at(-1);
      if (!last) return slot;
      slot = last;
    }
  }

  // Morphing: the same elements, another content

  /** @param {Node} mine @param {Node} fresh */
  #morph(mine, fresh) {
    if (mine instanceof Element && fresh instanceof Element) {
      this.#morphAttributes(mine, fresh);
      if (!mine.classList.contains("tc-time")) this.#morphChildren(mine, fresh); // the page alone fills it
    } else if (mine instanceof CharacterData && fresh instanceof CharacterData) {
      morphText(mine, fresh.data);
    }
  }

  /** @param {Element} mine @param {Element} fresh */
  #morphAttributes(mine, fresh) {
    const kept = this.#isReaders(mine) ? "open" : "";
    for (const { name } of [...mine.attributes]) {
      if (name !== kept && !fresh.hasAttribute(name)) mine.removeAttribute(name);
    }
    for (const { name, value } of fresh.attributes) {
      if (name !== kept && mine.getAttribute(name) !== value) mine.setAttribute(name, value);
    }
    if (!kept && mine instanceof HTMLDetailsElement) this.expected.set(mine, mine.open);
  }

  /** Whether it is the reader who has opened or closed this. @param {Element} mine */
  #isReaders(mine) {
    if (!(mine instanceof HTMLDetailsElement)) return false;
    return this.readers.has(mine) || this.expected.get(mine) !== mine.open; // its event may be yet to come
  }

  /** @param {Element} mine @param {Element} fresh */
  #morphChildren(mine, fresh) {
    const old = [...mine.childNodes].filter((child) => !this.owned.has(child));
    const end = [...mine.childNodes].find((child) => this.owned.has(child)) ?? null;
    let at = 0;
    for (const next of [...fresh.childNodes]) {
      const found = old.findIndex((child, place) => place >= at && child.nodeName === next.nodeName);
      if (found < 0) {
        mine.insertBefore(next, old[at] ?? end);
        for (const details of detailsIn(next)) this.expected.set(details, details.open);
        continue;
      }
      for (; at < found; at++) old[at].remove();
      this.#morph(old[at++], next);
    }
    for (; at < old.length; at++) old[at].remove();
  }

  /** @param {Event} event */
  #toggled(event) {
    const details = event.target;
    if (!(details instanceof HTMLDetailsElement)) return;
    if (!this.readers.has(details) && this.expected.get(details) === details.open) return;
    this.readers.add(details);
    if (details === this.info) return this.session.chose(TAKEN, details.open);
    const owner = this.#ownerOf(details);
    if (owner && detailsIn(owner)[0] === details) {
      this.session.chose(/** @type {string} */ (this.owned.get(owner)), details.open);
    }
  }

  /** The innermost node that it is part of. @param {Element} within @returns {Element | null} */
  #ownerOf(within) {
    /** @type {Element | null} */
    let each = within;
    while (each && !this.owned.has(each)) each = each.parentElement;
    return each;
  }
}

// Asking a person ---------------------------------------------------------------------------------------------

const SCOPES = { once: "once", chat: "for this chat", always: "always for this tool" };
const INVISIBLE = "Characters of these arguments that cannot be seen are written out, as <U+200B>.";
const ANYWAY = " without reading all of it";
const IN_VIEW = 0.95; // of an element: the rest is less than a line
let panelsMade = 0;

/** @param {string} text @param {string} kind @param {() => void} act */
function button(text, kind, act) {
  const made = element("button", `tc-button ${kind}`, text);
  made.type = "button";
  made.addEventListener("click", act);
  return made;
}

/**
 * What of a question has been in view, in any order and for a frame at least. The browser says so (IntersectionObserver):
 * it knows of every box that scrolls or clips, of folds, of the window, and of the frame that the page may be in.
 */
class Reading {
  /** @param {() => void} look called when it has changed */
  constructor(look) {
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
        look();
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
}

/**
 * May this call run? One panel in the card, in one of three modes: `ask`, `edit` with the arguments' JSON, `deny` with
 * a reason. What is sent back is the text itself, as it came from the kernel or as the person left it: this page
 * never computes with it, since a number of JavaScript does not hold every number of JSON.
 */
class Panel {
  /** @param {Ask} ask @param {(answer: object) => void} send */
  constructor(ask, send) {
    this.ask = ask;
    this.send = send;
    this.isSent = false;
    this.root = element("div", "tc-ask");
    this.root.setAttribute("role", "group");
    this.root.setAttribute("aria-label", `May ${ask.name} run?`);
    this.root.dataset.lmSuppressShortcuts = "true"; // JupyterLab's own: Enter, A, B, D D mean something else there
    this.root.addEventListener("keydown", (event) => this.#key(event));
    this.#buildFields();
    this.#buildRow();
    this.#turn("ask");
  }

  #buildFields() {
    const id = `tc-ask-${++panelsMade}`;
    this.text = element("textarea", "tc-ask-text");
    Object.assign(this.text, { spellcheck: false, autocapitalize: "off", dir: "ltr" });
    this.text.setAttribute("aria-describedby", id);
    this.reading = new Reading(() => this.#judge());
    this.text.addEventListener("input", () => this.#check());
    this.problem = Object.assign(element("div", "tc-ask-problem"), { id });
    this.editor = element("label", "tc-ask-field", "Arguments, as JSON");
    this.editor.append(this.text);
    this.reason = element("input", "tc-ask-reason");
    Object.assign(this.reason, { type: "text", maxLength: 2000, placeholder: "optional; the model is told" });
    this.denial = element("label", "tc-ask-field", "Reason");
    this.denial.append(this.reason);
    this.warning = element("div", "tc-ask-warning", this.ask.invisible ? INVISIBLE : "");
    this.root.append(this.warning, this.editor, this.problem, this.denial);
  }

  /** How much was not in view, and what can be done about it. */
  #buildUnread() {
    this.count = Object.assign(element("div", "tc-ask-count"), { id: `${this.problem.id}-unread` });
    this.next = button("Show the next lines", "", () => this.#showNext());
    this.anyway = button("", "", () => this.#approve(true));
    this.unread = element("div", "tc-ask-unread");
    this.unread.append(this.count, this.next, this.anyway);
    this.unread.hidden = true;
    this.root.append(this.unread);
  }

  #buildRow() {
    this.approve = button("Approve", "tc-button-go", () => this.#approve());
    this.edit = button("Edit", "", () => this.#turn("edit", this.text));
    this.deny = button("Deny", "", () => this.#turn("deny", this.reason));
    this.edit.title = "The whole arguments as JSON, to be read or changed";
    this.run = button("Run edited", "tc-button-go", () => this.#approve());
    this.refuse = button("Deny", "tc-button-no", () => this.#deny());
    this.cancel = button("Cancel", "", () => this.#leave());
    this.scope = element("select", "tc-ask-scope");
    for (const [value, words] of Object.entries(SCOPES)) this.scope.add(new Option(words, value));
    this.allow = element("label", "tc-ask-allow", "Allow ");
    this.allow.append(this.scope);
    const row = element("div", "tc-ask-row");
    row.append(this.approve, this.edit, this.deny, this.run, this.refuse, this.cancel, this.allow);
    this.root.append(row);
    this.#buildUnread();
    for (const each of [this.approve, this.run]) each.setAttribute("aria-describedby", this.count.id);
  }

  /** @param {"ask" | "edit" | "deny"} mode @param {HTMLElement} [focus] */
  #turn(mode, focus) {
    this.mode = mode;
    for (const part of [this.approve, this.edit, this.deny]) part.hidden = mode !== "ask";
    for (const part of [this.editor, this.run]) part.hidden = mode !== "edit";
    for (const part of [this.denial, this.refuse]) part.hidden = mode !== "deny";
    this.cancel.hidden = mode === "ask";
    this.allow.hidden = mode === "deny";
    this.#complain("");
    if (mode === "edit") this.#fill();
    focus?.focus();
    this.#judge();
  }

  /** Whether all was in view, and what is said and allowed where it was not. */
  #judge() {
    const lines = [...this.reading.parts.keys()].filter((id) => CARD.test(id)).length;
    const missing = Math.max(lines, this.ask.lines) - this.seen;
    const { hidden } = this.ask;
    const words = [];
    if (missing > 0) words.push(`${missing.toLocaleString("en")} of ${this.ask.lines.toLocaleString("en")} lines not seen yet.`);
    else if (this.reading.next) words.push("The name of the tool not seen yet.");
    if (hidden) words.push(`Not shown here: ${hidden}. Edit has all of it.`);
    this.isRead = this.reading.hasBegun && words.length === 0;
    const isLeft = this.isRead && this.unread.contains(document.activeElement);
    this.unread.hidden = this.isRead || !this.reading.hasBegun || this.mode === "deny";
    this.next.hidden = !this.reading.next;
    setText(this.count, words.join(" "));
    const go = this.mode === "edit" ? this.run : this.approve;
    setText(this.anyway, go.textContent + ANYWAY);
    this.anyway.disabled = this.mode === "edit" && this.run.disabled;
    for (const each of [this.approve, this.run]) each.setAttribute("aria-disabled", String(!this.isRead));
    if (isLeft) go.focus({ preventScroll: true });
  }

  /** How many lines of the arguments were in view. */
  get seen() {
    return [...this.reading.seen].filter((id) => CARD.test(id)).length;
  }

  /** Scrolls to what was not in view, and opens what it is folded in. */
  #showNext() {
    const part = this.reading.next;
    if (!part) return;
    for (let fold = part.closest("details"); fold; fold = fold.parentElement?.closest("details") ?? null) fold.open = true;
    const box = part.closest("pre");
    if (box) {
      box.scrollTop += part.getBoundingClientRect().top - box.getBoundingClientRect().top - box.clientTop;
      box.scrollIntoView({ block: "nearest" });
    }
    part.scrollIntoView({ block: "nearest" });
  }

  #fill() {
    this.text.value = this.ask.text;
    this.text.rows = Math.min(Math.max(this.ask.text.split("\n").length, 4), 16);
    this.#check();
    this.text.setSelectionRange(0, 0);
  }

  /** Back to the question, with the focus where it came from. */
  #leave() {
    this.#turn("ask", this.mode === "deny" ? this.deny : this.edit);
  }

  #check() {
    this.#complain(this.text.value === this.ask.text ? "" : problemOf(this.text.value));
  }

  /** @param {string} problem */
  #complain(problem) {
    setText(this.problem, problem);
    this.text.setAttribute("aria-invalid", String(problem !== ""));
    this.run.disabled = problem !== "";
    this.anyway.disabled = this.mode === "edit" && this.run.disabled;
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    event.stopPropagation();
    if (event.isComposing) return;
    if (event.key === "Escape" && this.mode !== "ask") this.#leave();
    else if (event.key === "Enter" && event.target === this.reason) this.#deny();
    else if (event.key !== "Enter" || event.target !== this.text || !(event.ctrlKey || event.metaKey)) return;
    else if (!this.run.disabled) this.#approve();
    event.preventDefault();
  }

  /** @param {boolean} [unread] without having read all of it, as the person says */
  #approve(unread = false) {
    if (!this.isRead && !unread) return this.#showNext();
    const text = this.mode === "edit" ? this.text.value : this.ask.text;
    this.#send({ approved: true, text, scope: this.scope.value, seen: this.seen, ...(unread ? { unread } : {}) });
  }

  #deny() {
    this.#send({ approved: false, reason: this.reason.value });
  }

  /** Once, until the kernel says what was wrong with it. @param {object} answer */
  #send(answer) {
    if (this.isSent) return;
    this.isSent = true;
    this.root.setAttribute("aria-busy", "true");
    this.send({ approval: this.ask.approval, ...answer });
  }

  /**
   * @param {Ask} ask the same question, perhaps with what was wrong with the last answer
   * @param {boolean} away an answer would not arrive
   * @param {Map<string, Element>} parts what has to be in view
   */
  update(ask, away, parts) {
    this.root.inert = away;
    if ((ask.refused ?? 0) !== (this.ask.refused ?? 0) && this.isSent) {
      this.isSent = false;
      this.root.removeAttribute("aria-busy");
      this.#complain(ask.problem ?? "");
    }
    this.ask = ask;
    this.reading.watch(parts);
    this.#judge();
  }

  close() {
    this.reading.observer.disconnect();
    this.root.remove();
  }
}

/** What is wrong with edited arguments, as far as a page can tell; else nothing. @param {string} text */
function problemOf(text) {
  try {
    const value = JSON.parse(text);
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    return isObject ? "" : "Arguments are a JSON object: { … }.";
  } catch (error) {
    return `This is not JSON: ${/** @type {Error} */ (error).message}`;
  }
}

// The reader's place --------------------------------------------------------------------------------------------

const ROWS = ".tc, .tc-turn, .tc-said, .tc-group, .tc-text, .tc-call, .tc-call > details"; // blocks below each other

/**
 * What is at the upper edge of the reader's sight, where part of the view lies above that edge. After a change `keep`
 * scrolls it back to where it was: JupyterLab switches the browser's own scroll anchoring off for most cells.
 *
 * @param {Element} view
 * @param {Element} root
 */
function readersPlace(view, root) {
  const scroller = view.isConnected ? scrollerOf(view) : null;
  if (!scroller) return null;
  const edge = scroller === document.scrollingElement ? 0 : scroller.getBoundingClientRect().top;
  const { top, bottom } = view.getBoundingClientRect();
  if (top >= edge) return null;
  const isAbove = bottom <= edge; // all of it: what is below moves as its end does
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

/** The first element that reaches below the edge, what is first in that, and so on. @param {Element} root @param {number} edge */
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

/** The element whose scrolling moves this one up and down; one pixel more may be rounding. @param {Element} within */
function scrollerOf(within) {
  for (let each = within.parentElement; each; each = each.parentElement) {
    if (each.scrollHeight > each.clientHeight + 1 && /auto|scroll/.test(getComputedStyle(each).overflowY)) return each;
  }
  return document.scrollingElement;
}

/**
 * @typedef {[string, number]} Which  a tag, and which of the elements with it: the same in both forms
 * @typedef {{ancestors: Element[], text: string, scrolls: [Which, number, number][], selection: [number, number] | null,
 *            focus: Which | null}} Left  where a reader was: ``selection`` from and to a character, ``scrolls`` left and top
 */

const LIVE_ONLY = ".tc-ask, .tc-time"; // what the static form does not have, or not in words

/** @param {Element} root @param {Set<Element>} scrolled @returns {Left | null} nothing to bring back */
function leftBy(root, scrolled) {
  const ancestors = [];
  if (!scrolled.size && document.getSelection()?.isCollapsed !== false && !root.contains(document.activeElement)) return null;
  for (let each = root.parentElement; each; each = each.parentElement) ancestors.push(each);
  /** @type {Left["scrolls"]} */
  const scrolls = [];
  for (const each of scrolled) {
    const which = each.scrollLeft || each.scrollTop ? whichOf(root, each) : null;
    if (which) scrolls.push([which, each.scrollLeft, each.scrollTop]);
  }
  const selected = document.getSelection();
  const isSelected = selected && !selected.isCollapsed && root.contains(selected.anchorNode) && root.contains(selected.focusNode);
  return {
    ancestors,
    text: textOf(root),
    scrolls,
    selection: isSelected ? [offsetOf(root, selected.anchorNode, selected.anchorOffset), offsetOf(root, selected.focusNode, selected.focusOffset)] : null,
    focus: document.activeElement && root.contains(document.activeElement) ? whichOf(root, document.activeElement) : null,
  };
}

/** Put the reader back, as soon as the static form is there. @param {Left} left @param {Element} gone the live form */
function bringBack(left, gone) {
  if (!left.scrolls.length && !left.selection && !left.focus) return;
  /** @type {MutationObserver} */
  let watch;
  const look = () => {
    const place = left.ancestors.find((each) => each.isConnected && each !== document.documentElement);
    const found = [...(place?.querySelectorAll(".tc-run > .tc") ?? [])].filter((each) => each !== gone);
    const mine = found.length === 1 ? found[0] : found.find((each) => textOf(each) === left.text);
    if (!mine) return;
    watch.disconnect();
    for (const [which, x, y] of left.scrolls) elementOf(mine, which)?.scrollTo({ left: x, top: y, behavior: "instant" });
    if (left.focus && document.activeElement === document.body) elementOf(mine, left.focus)?.focus({ preventScroll: true });
    if (left.selection && document.getSelection()?.isCollapsed !== false) select(mine, left.text, left.selection);
  };
  watch = new MutationObserver(look);
  const stays = left.ancestors.find((each) => each.matches(".jp-OutputArea")) ?? left.ancestors.at(-1);
  if (stays) watch.observe(stays, { childList: true, subtree: true });
  setTimeout(() => watch.disconnect(), SEEK_MS);
  look();
}

/** @param {Element} root @param {string} tag those that both forms have */
const elementsIn = (root, tag) => [...root.getElementsByTagName(tag)].filter((each) => !each.matches(".tc-group") && !each.closest(".tc-ask"));

/** @param {Element} root @param {Element} each @returns {Which | null} */
function whichOf(root, each) {
  const number = elementsIn(root, each.tagName).indexOf(each);
  return number < 0 ? null : [each.tagName, number];
}

/** @param {Element} root @param {Which} which */
const elementOf = (root, [tag, number]) => /** @type {HTMLElement | undefined} */ (elementsIn(root, tag)[number]);

/** @param {Element} root @returns {Text[]} those that both forms have */
function textNodes(root) {
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT, (node) => {
    if (node instanceof Element) return node.matches(LIVE_ONLY) ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_SKIP;
    return NodeFilter.FILTER_ACCEPT;
  });
  const found = [];
  while (walker.nextNode()) found.push(/** @type {Text} */ (walker.currentNode));
  return found;
}

/** @param {Element} root */
const textOf = (root) => textNodes(root).map((node) => node.data).join("");

/** How many characters stand before a point. @param {Element} root @param {Node | null} container @param {number} offset */
function offsetOf(root, container, offset) {
  const before = document.createRange();
  before.selectNodeContents(root);
  if (container) before.setEnd(container, offset);
  let count = 0;
  for (const node of textNodes(root)) {
    if (node === container) return count + offset;
    if (!before.isPointInRange(node, node.length)) break;
    count += node.length;
  }
  return count;
}

/** @param {Element} root @param {string} text that it must have @param {[number, number]} selection */
function select(root, text, selection) {
  if (textOf(root) !== text) return; // something is masked where it is saved
  const nodes = textNodes(root);
  const [from, to] = selection.map((offset) => {
    let left = offset;
    const node = nodes.find((each) => left <= each.length || ((left -= each.length), false));
    return { node, left };
  });
  if (from.node && to.node) document.getSelection()?.setBaseAndExtent(from.node, from.left, to.node, to.left);
}

// Small things ------------------------------------------------------------------------------------------------

/** The one element of the kernel's own HTML. It is escaped there, and a template runs nothing. @param {string} html */
function parse(html) {
  const template = document.createElement("template");
  template.innerHTML = html;
  return template.content.firstElementChild ?? document.createElement("span");
}

/** @param {Node} node @returns {HTMLDetailsElement[]} itself, if it is one, and those within */
function detailsIn(node) {
  if (!(node instanceof Element)) return [];
  const within = [...node.querySelectorAll("details")];
  return node instanceof HTMLDetailsElement ? [node, ...within] : within;
}

/** Change only what differs, so that a selection in the rest stays. @param {CharacterData} node @param {string} text */
function morphText(node, text) {
  const old = node.data;
  if (old === text) return;
  if (text.startsWith(old)) return node.appendData(text.slice(old.length));
  const shorter = Math.min(old.length, text.length);
  let start = 0;
  while (start < shorter && old[start] === text[start]) start++;
  let same = 0;
  while (same < shorter - start && old[old.length - 1 - same] === text[text.length - 1 - same]) same++;
  node.replaceData(start, old.length - start - same, text.slice(start, text.length - same));
}

/** Its text as it would be read aloud. @param {Element} root */
function lines(root) {
  const copy = /** @type {Element} */ (root.cloneNode(true));
  for (const line of copy.querySelectorAll(LINES)) line.append("\n");
  return (copy.textContent ?? "").replace(/\n{3,}/g, "\n\n").trim();
}

/** @param {Element} place @param {string} text */
function setText(place, text) {
  if (place.textContent !== text) place.textContent = text;
}

/**
 * Change the outputs that show a widget's view in the notebook. Only JupyterLab's widget manager knows its notebook
 * (`context`, an IContext<INotebookModel>); in another front end, or another JupyterLab, all stays.
 * @param {any} manager @param {string} model @param {(output: any) => any} change an output of nbformat, to another
 */
function changeOutputs(manager, model, change) {
  try {
    const cells = manager?.context?.model?.cells;
    for (let number = 0; number < (cells?.length ?? 0); number++) {
      const outputs = cells.get(number).outputs;
      for (let place = 0; place < (outputs?.length ?? 0); place++) {
        const output = outputs.get(place);
        if (output.data[WIDGET_VIEW]?.model_id === model) outputs.set(place, change(output.toJSON()));
      }
    }
  } catch (error) {
    console.warn("[toolcall_nb]", error);
  }
}

/**
 * Put a static output where a widget's view is saved: what `update_display` does in a page that saw the output being made.
 * @param {any} manager @param {string} model @param {Record<string, string>} data
 */
function replaceOutput(manager, model, data) {
  changeOutputs(manager, model, () => ({ output_type: "display_data", data, metadata: {} }));
}

/** As render/html_output/card.py writes it; while it runs, tenths are enough. @param {number} seconds @param {boolean} running */
function duration(seconds, running) {
  if (seconds < 9.995) return `${seconds.toFixed(running ? 1 : 2)} s`;
  const whole = Math.round(seconds);
  return whole < 60 ? `${whole} s` : `${Math.floor(whole / 60)} min ${String(whole % 60).padStart(2, "0")} s`;
}

/** anywidget calls this once for each model; messages that come before the first view reach only `initialize`. */
export default () => {
  const session = new Session();
  return {
    /** @param {{model: Model}} context */
    initialize({ model }) {
      session.attach(model);
    },
    /** @param {{el: HTMLElement}} context */
    render({ el }) {
      return session.open(el);
    },
  };
};
