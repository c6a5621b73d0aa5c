// What a page of a front end needs of JupyterLab's own client, in one script.
import * as services from "@jupyterlab/services";

window.services = services;
