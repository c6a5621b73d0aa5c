// One cell of a front end that is not a notebook of Jupyter's: it runs code in a kernel and draws the outputs by the
// front end's order of MIME types. The front end's own widget manager draws the widgets.

const VIEW = "application/vnd.jupyter.widget-view+json";

/** The outputs of a cell: what the messages of a run make of them, and their elements. */
export class Outputs {
  /**
   * @param {HTMLElement} element
   * @param {string[]} order MIME types, the preferred one first
   * @param {(model: string, element: HTMLElement, metadata: any) => Promise<void>} drawWidget rejects if there is no such model
   */
  constructor(element, order, drawWidget) {
    this.element = element;
    this.order = order;
    this.drawWidget = drawWidget;
    this.outputs = [];
  }

  /** @param {any} message of the kernel's IOPub channel */
  take({ header, content }) {
    switch (header.msg_type) {
      case "display_data":
      case "execute_result":
        this.add({ data: content.data, metadata: content.metadata, id: content.transient?.display_id });
        break;
      case "update_display_data":
        for (const output of this.outputs) {
          if (output.id !== content.transient.display_id) continue;
          Object.assign(output, { data: content.data, metadata: content.metadata });
          this.draw(output);
        }
        break;
      case "stream":
      case "error":
        this.add({ data: { "text/plain": content.text ?? content.traceback.join("\n") }, metadata: {} });
        break;
      case "clear_output":
        this.outputs = [];
        this.element.replaceChildren();
    }
  }

  /** @param {any} output */
  add(output) {
    output.element = document.createElement("div");
    output.element.className = "output";
    this.element.append(output.element);
    this.outputs.push(output);
    this.draw(output);
  }

  /** Draws an output in the first of its MIME types that can be drawn. */
  async draw({ data, metadata, element }) {
    element.replaceChildren();
    for (const type of this.order.filter(each => each in data)) {
      try {
        if (type === VIEW) await this.drawWidget(data[VIEW].model_id, element, metadata);
        else if (type === "text/html") element.innerHTML = data[type];
        else element.textContent = data[type];
        return;
      } catch (error) {
        console.debug("The next MIME type is drawn, since", error);
        element.replaceChildren();
      }
    }
  }

  /** @returns {object[]} the outputs as a notebook saves them */
  saved() {
    return this.outputs.map(({ data, metadata }) => ({ output_type: "display_data", data, metadata }));
  }
}

/**
 * Runs code as a notebook's cell; its outputs go to `outputs`.
 *
 * @param {any} kernel a connection of @jupyterlab/services
 * @param {string} code
 * @param {Outputs | null} outputs
 */
export async function execute(kernel, code, outputs) {
  const future = kernel.requestExecute({ code, allow_stdin: true, stop_on_error: true }, true, { cellId: "cell-1" });
  future.onIOPub = message => outputs?.take(message);
  return (await future.done).content.status;
}
