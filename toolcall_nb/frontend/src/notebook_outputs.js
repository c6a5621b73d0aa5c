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
 * @param {string[]} captors the ids of the Output widgets that may show the view
 * @param {Record<string, string>} data
 */
export function replaceOutput(manager, model, captors, data) {
  const output = { output_type: "display_data", data, metadata: {} };
  changeOutputs(manager, model, () => output);
  for (const id of captors) replaceInOutputWidget(manager, id, model, output).catch(warn);
}

/**
 * Replaces a view in an Output widget of ipywidgets, which ignores `update_display`. JupyterLab's has a model of its
 * outputs; replacing one there leaves the others drawn.
 *
 * @param {any} manager
 * @param {string} id of the Output widget
 * @param {string} model the id of the widget whose view it is
 * @param {object} output
 */
async function replaceInOutputWidget(manager, id, model, output) {
  const widget = await manager.get_model(id);
  /** @type {any[]} */
  const before = widget.get("outputs") ?? [];
  const places = [...before.keys()].filter((place) => before[place].data?.[WIDGET_VIEW]?.model_id === model);
  if (!places.length) return;
  const after = before.map((each, place) => (places.includes(place) ? output : each));
  const drawn = widget.outputs?.length === before.length && typeof widget.outputs.set === "function";
  if (drawn) for (const place of places) widget.outputs.set(place, output);
  widget.set("outputs", after, { newMessage: drawn }); // a message that is drawn already
  widget.save_changes();
}
