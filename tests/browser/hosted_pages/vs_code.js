// VS Code's way to draw widgets: its own widget manager (@vscode/jupyter-ipywidgets8) in the page of the outputs. The
// manager asks its host for the scripts of widgets that it does not have, and takes them from require.js.

import { activate } from "./ipywidgets.js";

/**
 * @param {any} kernel
 * @param {Record<string, string>} scripts the addresses of widgets' scripts, by module
 * @returns {Promise<(model: string, element: HTMLElement) => Promise<void>>}
 */
export async function widgets(kernel, scripts) {
  activate();
  window.vscIPyWidgets8.load();
  const loader = {
    widgetsRegisteredInRequireJs: new Set(),
    async loadWidgetScript(module) {
      if (scripts[module]) window.requirejs.config({ paths: { [module]: scripts[module].replace(/\.js$/, "") } });
    },
    errorHandler(name, module, version, error) {
      console.error("widget:", name, module, version, error);
    },
    successHandler() {},
  };
  const element = document.getElementById("widgets");
  const manager = new window.vscIPyWidgets.WidgetManager(kernel, element, loader, () => {});
  return async (id, node) => {
    node.classList.add("cell-output-ipywidget-background"); // and it stays, as in VS Code
    const model = manager.get_model(id);
    if (!model) throw new Error(`no model ${id}`);
    const view = await manager.create_view(await model, { el: node });
    await manager.display_view({}, view, { node });
  };
}
