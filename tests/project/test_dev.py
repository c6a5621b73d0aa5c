"""The commands of ``./dev``, run in a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pexpect
import pytest
from nbformat.sign import NotebookNotary

from tests.support.stored_outputs import NOTEBOOKS

ROOT = Path(__file__).resolve().parents[2]
WITHIN = 90

DEV = f"""
import sys
from pathlib import Path
from types import ModuleType
dev = ModuleType("dev")
dev.__file__ = {str(ROOT / "dev")!r}
exec(compile(Path(dev.__file__).read_text("utf-8"), dev.__file__, "exec"), vars(dev))
dev.ENV = Path(sys.prefix)
dev.have_environment = lambda lock: None
"""
"""Code that loads the script as a module and makes it use the environment of these tests."""


def in_a_terminal(code: str) -> Any:
    return pexpect.spawn(sys.executable, ["-c", DEV + code], encoding="utf-8", timeout=WITHIN, cwd=str(ROOT))


@pytest.fixture
def tour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "JUPYTERLAB_SETTINGS_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    monkeypatch.setenv("JUPYTERLAB_WORKSPACES_DIR", str(tmp_path / "workspaces"))
    terminal = in_a_terminal("dev.tour('--no-browser', '--ServerApp.port=0', '--IdentityProvider.token=x')")
    try:
        terminal.expect("Use Control-C to stop this server")
        terminal.expect(["Skipped non-installed server", pexpect.TIMEOUT], timeout=10)  # the last line of its startup
        yield terminal
    finally:
        terminal.close(force=True)


@pytest.mark.thorough
def test_the_tour_asks_on_ctrl_c_continues_after_no_and_ends_after_yes_without_a_traceback(tour: Any) -> None:
    tour.sendintr()
    tour.expect(r"Shut ?down this Jupyter server \(y/\[n\]\)\?")
    tour.sendline("n")
    tour.expect("resuming operation")
    # jupyter-server restores its signal handler only after that line: an earlier Ctrl+C would end it without asking.
    tour.expect(pexpect.TIMEOUT, timeout=3)
    tour.sendintr()
    tour.expect(r"Shut ?down this Jupyter server \(y/\[n\]\)\?")
    tour.sendline("y")
    tour.expect(pexpect.EOF)
    tour.wait()
    assert "Traceback" not in tour.before
    assert (tour.exitstatus, tour.signalstatus) == (0, None)


@pytest.mark.thorough
def test_the_tour_trusts_every_notebook(tour: Any, tmp_path: Path) -> None:
    assert tour.isalive()
    notary: Any = NotebookNotary(data_dir=str(tmp_path / "jupyter_data_dir"))
    trusted = [path.name for path in NOTEBOOKS if notary.check_signature(nbformat.read(path, as_version=4))]
    assert trusted == [path.name for path in NOTEBOOKS]
    notary.store.close()


def test_the_command_handles_ctrl_c_and_dev_exits_with_its_exit_code() -> None:
    child = (
        "import time\n"
        "try:\n    print('begun', flush=True); time.sleep(60)\n"
        "except KeyboardInterrupt:\n    time.sleep(1); print('cleaned up'); raise SystemExit(7)"
    )
    terminal = in_a_terminal(f"dev.run(sys.executable, '-c', {child!r})")
    terminal.expect("begun")
    terminal.sendintr()
    terminal.expect(pexpect.EOF)
    terminal.wait()
    assert "cleaned up" in terminal.before
    assert "Traceback" not in terminal.before
    assert terminal.exitstatus == 7
