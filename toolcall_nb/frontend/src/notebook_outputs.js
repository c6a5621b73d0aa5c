import { warn } from "./protocol.js";

const WIDGET_VIEW = "application/vnd.jupyter.widget-view+json";

/**
 * Changes the notebook's outputs that show a widget's view. JupyterLab's widget manager has a reference to its notebook
 * (`context`, an IContext<INotebookModel>). In any other front end, this changes nothing.
 *
 * @param {any} manager
 * @param {string} model the widget's id
 * @param {(output: any) => any} change takes and returns an output of nbformat
 */
export function changeOutputs(manager, model, change) {
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
    warn(error);
  }
}

/**
 * Replaces a widget's view by a static output, as `update_display` does in a page that received the original output.
 *
 * @param {any} manager
 * @param {string} model the widget's id
 * @param {Record<string, string>} data
 */
export function replaceOutput(manager, model, data) {
  changeOutputs(manager, model, () => ({ output_type: "display_data", data, metadata: {} }));
}
