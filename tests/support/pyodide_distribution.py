"""Collects what Python needs in a browser: Pyodide itself, and the package with all that it requires, as wheels.

Main entry point: `make_distribution`. Pyodide comes from npm, and the wheels from the index of Python packages, in the
versions and with the hashes of the lock files.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from packaging.utils import canonicalize_name, parse_wheel_filename

from tests.support.requirements import ROOT, closure, runtime

__all__ = ["make_distribution"]

_PYODIDE = "pyodide@314.0.7"
_INTEGRITY = "sha512-0YvXxEhfEdpLfb/XkM2BFAeMROq0iMUX2bzzH9pOttyMcWkwq+HbE5uyuGD82LN7y2q+SNvi/6V5JEsOlD2R1A=="
_MICROPIP = "micropip==0.11.1 --hash=sha256:768de165adb8e66906039d8fec4127a57f522dfdf8e6fbff877a4616941ecfd3"
"""Pyodide's installer. It needs a newer Python than the lock files are for."""

_MARKERS = {
    "os_name": "posix",
    "platform_machine": "wasm32",
    "platform_system": "Emscripten",
    "python_full_version": "3.14.2",
    "python_version": "3.14",
    "sys_platform": "emscripten",
}
_WASM = ("--platform", "pyemscripten_2026_0_wasm32", "--implementation", "cp", "--abi", "cp314")
_ELSEWHERE = {"jupyterlab-widgets", "widgetsnbextension"}
"""Packages that are needed for their front end alone, which the page has, and whose Python part is a stand-in."""

_WITHOUT_BINARIES = {"pyyaml"}
"""Packages without a wheel for Pyodide on the index. Their part in Python is enough."""


def make_distribution(folder: Path, more: Sequence[Path] = ()) -> list[str]:
    """Fills ``folder`` with Pyodide, the wheels of the package, of all that it requires, and ``more`` wheels.

    Pyodide's list of packages (pyodide-lock.json) then names these and no others. Returns their names.
    """
    folder.mkdir(parents=True, exist_ok=True)
    _unpack_pyodide(folder)
    _download_wheels(folder)
    for wheel in more:
        shutil.copy(wheel, folder)
    build = ("hatchling", "build", "--target", "wheel", "--directory", str(folder))
    subprocess.run([sys.executable, "-m", *build], cwd=ROOT, check=True, capture_output=True)
    packages = {name: entry for name, entry in map(_entry, sorted(folder.glob("*.whl")))}
    listed = folder / "pyodide-lock.json"
    content = json.loads(listed.read_text("utf-8"))
    listed.write_text(json.dumps({**content, "packages": packages}, indent=1), "utf-8")
    return list(packages)


def _unpack_pyodide(folder: Path) -> None:
    with TemporaryDirectory() as place:
        command = ["npm", "pack", "--json", "--loglevel=error", _PYODIDE]
        packed = subprocess.run(command, cwd=place, check=True, capture_output=True, text=True)
        (about,) = json.loads(packed.stdout)
        if about["integrity"] != _INTEGRITY:
            raise RuntimeError(f"{_PYODIDE} has another hash than expected: {about['integrity']}")
        shutil.unpack_archive(Path(place) / about["filename"], place)
        for path in (Path(place) / "package").iterdir():
            if path.suffix in (".mjs", ".wasm", ".zip", ".json"):
                shutil.copy(path, folder)


def _download_wheels(folder: Path) -> None:
    """Downloads the wheels for Pyodide. A package that has none there is taken from this machine's wheel."""
    needed = set(closure(runtime(), _MARKERS)) - _ELSEWHERE
    with TemporaryDirectory() as place:
        locked = _locked(needed - _WITHOUT_BINARIES)
        _pip_download(folder, [*locked, _MICROPIP], "--python-version", "3.14", *_WASM)
        _pip_download(Path(place), _locked(needed & _WITHOUT_BINARIES))
        for wheel in Path(place).glob("*.whl"):
            _write_without_binaries(wheel, folder)


def _locked(names: set[str]) -> list[str]:
    """Returns the pins of these packages with their hashes, without markers."""
    text = (ROOT / "requirements" / "demo.txt").read_text("utf-8")
    pins = [re.sub(r"^(\S+) ;[^\\]*", r"\1 ", block) for block in re.split(r"\n(?! )", text.strip())]
    found = {str(canonicalize_name(pin.partition("==")[0])): pin for pin in pins}
    return [found[name] for name in sorted(names)]


def _pip_download(folder: Path, pins: Sequence[str], *target: str) -> None:
    with TemporaryDirectory() as place:
        wanted = Path(place) / "wanted.txt"
        wanted.write_text("\n".join(pins) + "\n")
        options = ("--quiet", "--no-deps", "--require-hashes", "--only-binary=:all:", "--dest", str(folder))
        subprocess.run([sys.executable, "-m", "pip", "download", *options, *target, "-r", str(wanted)], check=True)


def _write_without_binaries(wheel: Path, folder: Path) -> None:
    """Writes the part of a wheel that is in Python as a wheel for every platform."""
    name, version = wheel.name.split("-")[:2]
    about = f"{name}-{version}.dist-info"
    target = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as source, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as written:
        for entry in source.infolist():
            if entry.filename in (f"{about}/WHEEL", f"{about}/RECORD") or entry.filename.endswith(".so"):
                continue
            written.writestr(entry, source.read(entry))
        written.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        written.writestr(f"{about}/RECORD", "")


def _entry(wheel: Path) -> tuple[str, dict[str, object]]:
    """Returns the package's name and its entry in Pyodide's list of packages."""
    name, version, *_ = parse_wheel_filename(wheel.name)
    return name, {
        "name": name,
        "version": str(version),
        "file_name": wheel.name,
        "install_dir": "site",
        "sha256": hashlib.sha256(wheel.read_bytes()).hexdigest(),
        "package_type": "package",
        "imports": [],
        "depends": [],
        "unvendored_tests": False,
    }
