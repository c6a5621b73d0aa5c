"""The tour in the real Pyodide, under Node; tests/browser/test_jupyterlite.py runs it in JupyterLite's page.

Two packages have no wheel for Pyodide: of PyYAML, the part in Python is taken; without nh3, the HTML that tools make
themselves is not shown.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.environments import clean_variables
from tests.support.pyodide_distribution import make_distribution
from tests.support.requirements import ROOT

CODE = """
import json, os, threading
from IPython.core.interactiveshell import InteractiveShell

os.chdir("/tmp")
try:
    threading.Thread(target=print).start()
except RuntimeError as error:
    print("THREADS", error)
shell = InteractiveShell.instance()
for cell in json.load(open("/repository/notebooks/tour.ipynb"))["cells"]:
    source = "".join(cell["source"])
    if cell["cell_type"] == "code":
        done = shell.run_cell(source, store_history=False)
        print("CELL", done.success, json.dumps(source))
print("ANSWERS", len(shell.user_ns["chat"].calls))
"""


@pytest.mark.thorough
def test_the_tour_runs_in_pyodide_but_for_its_shell_command(tmp_path: Path) -> None:
    packages = make_distribution(tmp_path / "pyodide")
    assert {"toolcall-nb", "pyyaml", "msgspec"} <= set(packages)
    assert "nh3" not in packages
    (tmp_path / "tour.py").write_text(CODE, "utf-8")
    script = str(ROOT / "tests" / "support" / "pyodide_tour.mjs")
    command = ["node", script, str(tmp_path / "pyodide"), str(ROOT), str(tmp_path / "tour.py")]
    ran = subprocess.run(
        command, cwd=tmp_path, env=clean_variables(tmp_path), capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    lines = ran.stdout.splitlines()
    assert "THREADS can't start new thread" in lines
    cells = [line.split(" ", 2)[1:] for line in lines if line.startswith("CELL ")]
    assert len(cells) > 15
    failed = [source for success, source in cells if success != "True"]
    assert ["!printf" in source for source in failed] == [True]  # Pyodide has no processes
    (answers,) = (int(line.removeprefix("ANSWERS ")) for line in lines if line.startswith("ANSWERS "))
    assert answers >= 4
    assert "Lisbon" in ran.stdout
