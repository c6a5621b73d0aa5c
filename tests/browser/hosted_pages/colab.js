// Colab's way to draw widgets: a widget manager of @jupyter-widgets/base-manager that the output's metadata names, and
// that takes the scripts of other packages from a public network as AMD modules. Colab's own (googlecolab/
// colab-cdn-widget-manager) is not in a registry; this one has the same packages in the same versions.

import * as base from "@jupyter-widgets/base";
import { ManagerBase } from "@jupyter-widgets/base-manager";
import * as controls from "@jupyter-widgets/controls";

const VIEW = "application/vnd.jupyter.widget-view+json";
const MODULES = { "@jupyter-widgets/base": base, "@jupyter-widgets/controls": controls };

/** A comm of JupyterLab's client as the manager wants it. */
class Comm {
  constructor(comm) {
    this.comm = comm;
    this.comm_id = comm.commId;
    this.target_name = comm.targetName;
  }

  send(data, callbacks, metadata, buffers) {
    const future = this.comm.send(JSON.parse(JSON.stringify(data)), metadata, buffers);
    future.onIOPub = (message) => {
      if (message.header.msg_type === "status") callbacks?.iopub?.status?.(message);
    };
    return future.msg.header.msg_id;
  }

  on_msg(receive) {
    this.comm.onMsg = receive;
  }

  on_close(receive) {
    this.comm.onClose = receive;
  }

  close() {
    this.comm.close();
  }
}

class Manager extends ManagerBase {
  async loadClass(name, module, version) {
    MODULES[module] ??= await load(`https://cdn.jsdelivr.net/npm/${module}@${version}/dist/index.js`);
    return MODULES[module][name];
  }

  async _create_comm() {
    throw new Error("no widget is made in the page");
  }

  async _get_comm_info() {
    return {};
  }
}

/** Evaluates a module that calls `define(names, make)`. */
async function load(address) {
  const script = await (await fetch(address)).text();
  let made = null;
  const define = (names, make) => {
    made = make(...names.map((each) => MODULES[each]));
  };
  new Function("define", script)(define);
  return made;
}

/** Draws a widget if the output's metadata ask for a manager of custom widgets; Colab's own has no other packages. */
export async function widgets(kernel) {
  const manager = new Manager();
  kernel.registerCommTarget("jupyter.widget", (comm, message) => manager.handle_comm_open(new Comm(comm), message));
  return async (id, node, metadata) => {
    const address = metadata?.[VIEW]?.colab?.custom_widget_manager?.url;
    if (!address) throw new Error("support for third party widgets is not enabled");
    const model = manager.get_model(id);
    if (!model) throw new Error(`no model ${id}`);
    const view = await manager.create_view(await model);
    node.append(view.el);
    node.dataset.manager = address;
  };
}
