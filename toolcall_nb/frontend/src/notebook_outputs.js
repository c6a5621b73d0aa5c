import { warn } from "./protocol.js";

const WIDGET_VIEW = "application/vnd.jupyter.widget-view+json";

/**
 * Changes the outputs in the notebook that show a widget's view. JupyterLab's widget manager knows its notebook
 * (`context`, an IContext<INotebookModel>). In any other front end nothing is changed.
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
 * Puts a static output in place of a widget's view, as `update_display` does in a page that saw the output being made.
 *
 * @param {any} manager
 * @param {string} model the widget's id
 * @param {Record<string, string>} data
 */
export function replaceOutput(manager, model, data) {
  changeOutputs(manager, model, () => ({ output_type: "display_data", data, metadata: {} }));
}
