import { ROOT } from "./protocol.js";

/** @typedef {import("./protocol.js").Patch} Patch @typedef {import("./protocol.js").Insert} Insert @typedef {import("./protocol.js").Splice} Splice */
/** @typedef {{id: string, parent: string, html: string, children: string[], birth: number}} DocumentNode */

/** The document as a tree of nodes, each with its HTML, without any DOM. A patch that does not apply throws. */
export class NodeTree {
  constructor() {
    /** @type {Map<string, DocumentNode>} */
    this.nodes = new Map([[ROOT, { id: ROOT, parent: ROOT, html: "", children: [], birth: 0 }]]);
    this.births = 0; // a node that is removed and inserted again, perhaps elsewhere, gets another number
  }

  /** @param {string} id @returns {DocumentNode} */
  node(id) {
    const node = this.nodes.get(id);
    if (!node) throw new Error(`There is no node ${JSON.stringify(id)}.`);
    return node;
  }

  /** @param {string} id @returns {number} how many nodes the node is in */
  depth(id) {
    let depth = 0;
    for (let each = id; each !== ROOT; each = this.node(each).parent) depth++;
    return depth;
  }

  /** Applies one patch; its second item determines its kind. @param {Patch} patch @returns {string[]} the changed ids */
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
    const removed = this.nodes.has(id) ? this.#remove(id) : [];
    const index = before === null ? parent.children.length : parent.children.indexOf(before);
    if (index < 0) throw new Error(`${JSON.stringify(before)} is not in ${JSON.stringify(parentId)}.`);
    parent.children.splice(index, 0, id);
    this.nodes.set(id, { id, parent: parentId, html, children: [], birth: ++this.births });
    return [...removed, id];
  }

  /** @param {string} id @returns {string[]} */
  #remove(id) {
    const siblings = this.node(this.node(id).parent).children;
    siblings.splice(siblings.indexOf(id), 1);
    const removed = this.#subtree(id);
    for (const each of removed) this.nodes.delete(each);
    return removed;
  }

  /** @param {string} id @returns {string[]} the node and all below it, parents first */
  #subtree(id) {
    return [id, ...this.node(id).children.flatMap((child) => this.#subtree(child))];
  }
}
