// Runs Python code in Pyodide. Arguments: the folder of Pyodide, a folder of packages, the repository, a file of code.
import fs from "node:fs";
import { pathToFileURL } from "node:url";

const [pyodide, packages, repository, code] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(`${pyodide}/pyodide.mjs`).href);
const python = await loadPyodide({ indexURL: `${pyodide}/` });
python.mountNodeFS("/packages", packages);
python.mountNodeFS("/repository", repository);
python.runPython("import sys; sys.path[:0] = ['/packages', '/repository']; sys.dont_write_bytecode = True");
await python.runPythonAsync(fs.readFileSync(code, "utf8"));
