"""The tour in the real Pyodide, under Node. Pyodide comes from npm, its packages from the index of Python packages.

Two packages have no wheel for Pyodide there: of PyYAML, the part in Python is taken; without nh3, the HTML that tools
make themselves is not shown. JupyterLite's kernel and page are not part of this test.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import yaml

from tests.support.environments import clean_variables

ROOT = Path(__file__).resolve().parents[2]
PYODIDE = "pyodide@314.0.7"
BINARY = ("jiter==0.19.0", "msgspec==0.22.0")
PURE = ("ipython>=9.18", "anywidget", "ipywidgets", "docstring-parser", "latex2mathml", "markdown-it-py>=4.3", "rich")
ANY = ("psygnal", "wcwidth")
"""Packages whose wheels in pure Python are chosen before those for this machine."""

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


def download(folder: Path, *arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--only-binary=:all:", "--dest", str(folder)]
    subprocess.run([*command, *arguments], check=True)


@pytest.fixture(scope="module")
def pyodide(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The folders of Pyodide and of the packages that the package needs in it."""
    folder = tmp_path_factory.mktemp("pyodide")
    subprocess.run(["npm", "pack", "--silent", PYODIDE], cwd=folder, check=True)
    shutil.unpack_archive(next(folder.glob("*.tgz")), folder)
    wheels, packages = folder / "wheels", folder / "packages"
    wasm = ("--platform", "pyemscripten_2026_0_wasm32", "--implementation", "cp", "--abi", "cp314")
    download(wheels, "--no-deps", *wasm, "--python-version", "3.14", *BINARY)
    download(wheels, "--no-deps", "--platform", "any", "--implementation", "py", "--abi", "none", *ANY)
    download(wheels, *PURE)
    for wheel in [*wheels.glob("*none-any.whl"), *wheels.glob("*wasm32.whl")]:
        zipfile.ZipFile(wheel).extractall(packages)
    shutil.copytree(Path(yaml.__file__).parent, packages / "yaml", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    return folder / "package", packages


@pytest.mark.thorough
def test_the_tour_runs_in_pyodide_but_for_its_shell_command(pyodide: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "tour.py").write_text(CODE, "utf-8")
    script = str(ROOT / "tests" / "support" / "pyodide_tour.mjs")
    command = ["node", script, *map(str, pyodide), str(ROOT), str(tmp_path / "tour.py")]
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
