// @ts-check
/**
 * A live chat with the server that this page comes from. What is said is drawn by the module that a notebook uses
 * (transcript.js), which knows an anywidget model and nothing else: `Channel` is one, over fetch.
 *
 * The address holds the thread after "#", and once the token, which is then kept for this tab and goes nowhere else.
 */
import makeWidget from "./transcript.js";

const RETRY_MS = 1000;
const TOKEN = "toolcall_nb-token";
const NO_TOKEN = "This server demands its token. Open the address that it printed when it started, with #token=… at its end.";
/** A reader who is this near to the end of the page is taken along, in pixels. */
const NEAR = 60;

/** @param {string} id @returns {any} */
const at = (id) => document.getElementById(id);

/** @param {string} path @param {RequestInit & {headers?: Record<string, string>}} [options] */
async function ask(path, options = {}) {
  const token = sessionStorage.getItem(TOKEN);
  const headers = { ...options.headers, ...(token ? { Authorization: `Bearer ${token}` } : {}) };
  const response = await fetch(path, { ...options, headers }).catch((error) => {
    throw error.name === "AbortError" ? error : new Error("The server does not answer. Is it still running?");
  });
  if (response.ok) return response;
  const problem = await response.json().catch(() => ({}));
  const said = response.status === 401 ? NO_TOKEN : problem.detail ?? response.statusText;
  throw Object.assign(new Error(said), { status: response.status });
}

/** @param {string} path @param {object} body */
const post = (path, body) =>
  ask(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });

/** @param {unknown} [error] */
function tell(error) {
  at("problem").hidden = error === undefined;
  at("problem").textContent = error === undefined ? "" : String(/** @type {any} */ (error).message ?? error);
}

/**
 * What the module takes for its model. Each turn of the server counts its steps from one, and the module has one count
 * for all of them: `base` lies between.
 */
class Channel {
  /** @param {string} thread */
  constructor(thread) {
    this.thread = thread;
    this.base = 0;
    this.lastId = "";
    this.seq = 0;
    this.isNew = true;
    this.isDone = true;
    /** @type {Record<string, (message: any) => void>} */
    this.handlers = {};
    this.reading = new AbortController();
  }

  /** @param {string} name */
  get(name) {
    return name === "snapshot" ? { seq: 0, patches: [], done: true } : undefined;
  }

  /** @param {string} name @param {(message: any) => void} handler */
  on(name, handler) {
    this.handlers[name] = handler;
  }

  /** @param {any} message */
  send(message) {
    const path = `/api/threads/${this.thread}`;
    if (message.type === "stop") post(`${path}/stop`, {}).catch(tell);
    else if (message.type === "answer") this.#answer(message).catch(tell);
    else if (message.type === "sync" && message.seq > 0) this.follow();
  }

  /** @param {any} message */
  #answer({ approval, approved, text, scope, reason, seen, unread }) {
    const path = `/api/threads/${this.thread}/approvals/${encodeURIComponent(approval)}`;
    return post(path, { approved, text, scope, reason: reason || undefined, seen, unread });
  }

  /** Read the thread's steps from the beginning of its turn to the end, over as many connections as it takes. */
  async follow() {
    this.reading.abort();
    const reading = (this.reading = new AbortController());
    this.isNew = true;
    this.isDone = false;
    while (!reading.signal.aborted && !this.isDone) {
      try {
        await this.#read(reading.signal);
      } catch (error) {
        if (reading.signal.aborted) return;
        if (/** @type {any} */ (error).status === 404) return;
        if (/** @type {any} */ (error).status) return tell(error);
      }
      if (!this.isDone) await new Promise((wake) => setTimeout(wake, RETRY_MS));
    }
  }

  /** @param {AbortSignal} signal */
  async #read(signal) {
    const headers = this.isNew ? {} : { "Last-Event-ID": this.lastId };
    const response = await ask(`/api/threads/${this.thread}/stream?wire=live`, { headers, signal });
    const reader = /** @type {ReadableStream<Uint8Array>} */ (response.body).getReader();
    const decoder = new TextDecoder();
    let text = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const events = (text + decoder.decode(value, { stream: true })).split("\n\n");
      text = /** @type {string} */ (events.pop());
      if (signal.aborted) return;
      for (const event of events) this.#take(event);
    }
  }

  /** @param {string} event */
  #take(event) {
    const [data, id] = ["data: ", "id: "].map((name) => field(event, name));
    if (!data) return;
    const step = JSON.parse(data);
    if (turnOf(id) !== turnOf(this.lastId)) this.isNew = true; // its turn is over, and another one runs
    this.lastId = id;
    if (this.isNew) this.base += this.seq + 1 - step.seq;
    this.isNew = false;
    this.seq = step.seq;
    this.isDone = step.done === true;
    const isNear = distance() < NEAR;
    at("hint").hidden = true;
    this.handlers["msg:custom"]({ ...step, seq: this.base + step.seq });
    if (isNear) requestAnimationFrame(() => scrollBy(0, distance()));
    at("send").disabled = !this.isDone;
  }
}

/** @param {string} event @param {string} name */
const field = (event, name) => event.split("\n").find((line) => line.startsWith(name))?.slice(name.length) ?? "";

/** @param {string} id as the server gives them: the turn, and a number in it */
const turnOf = (id) => id.split("-")[0];

/** How far the page could still be scrolled down. */
const distance = () => document.documentElement.scrollHeight - innerHeight - scrollY;

/** @type {Channel} */
let channel;

/** @param {string} thread */
function open(thread) {
  channel?.reading.abort();
  channel = new Channel(thread);
  history.replaceState(null, "", `#${thread}`);
  const widget = makeWidget();
  widget.initialize({ model: channel });
  at("chat").replaceChildren();
  widget.render({ el: at("chat") });
  tell();
  at("hint").hidden = false;
  at("send").disabled = false;
  at("prompt").focus();
}

async function send() {
  const prompt = at("prompt").value;
  if (!prompt.trim() || at("send").disabled) return;
  at("send").disabled = true;
  try {
    const response = await post("/api/chat", { message: prompt, conversationId: channel.thread });
    response.body?.cancel(); // the page reads the drawn steps instead; the turn goes on for whoever reads
    at("prompt").value = "";
    tell();
    channel.follow();
  } catch (error) {
    at("send").disabled = false;
    tell(error);
  }
}

/** randomUUID is there on loopback and over TLS alone. */
const newThread = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");

/** A token with a % in it is no reason to show nothing. @param {string} text */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** What stands after "#": a thread, or `token=…` once. */
function begin() {
  const hash = decoded(location.hash.slice(1));
  if (hash.startsWith("token=")) sessionStorage.setItem(TOKEN, hash.slice(6));
  const isThread = /^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$/.test(hash);
  open(isThread ? hash : newThread());
  if (isThread) channel.follow();
}

at("ask").addEventListener("submit", (/** @type {Event} */ event) => {
  event.preventDefault();
  send();
});
at("prompt").addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  send();
});
at("new").addEventListener("click", () => open(newThread()));
addEventListener("hashchange", begin);
begin();
ask("/api/tools")
  .then((response) => response.json())
  .then(({ models, tools }) => {
    const names = tools.map((/** @type {{name: string}} */ tool) => tool.name);
    at("about").textContent = [models[0], ...names].join(" · ");
    at("hint").textContent = `Ask ${models[0]} something. It ${names.length ? `may call ${names.join(", ")}` : "has no tools"}.`;
  })
  .catch(tell);
