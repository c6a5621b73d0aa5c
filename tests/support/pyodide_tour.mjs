// Runs Python code in Pyodide with all packages that come with it. Arguments: its folder, the repository, a file of code.
import fs from "node:fs";
import { pathToFileURL } from "node:url";

const [pyodide, repository, code] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(`${pyodide}/pyodide.mjs`).href);
const { packages } = JSON.parse(fs.readFileSync(`${pyodide}/pyodide-lock.json`, "utf8"));
const python = await loadPyodide({ indexURL: `${pyodide}/`, packages: Object.keys(packages) });
python.mountNodeFS("/repository", repository);
await python.runPythonAsync(fs.readFileSync(code, "utf8"));
