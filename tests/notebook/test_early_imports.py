"""What the first run needs is imported while the kernel of a person is idle, and never while a cell runs."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from IPython.core.events import EventManager, available_events

from tests.support.kernels import Messages, running_kernel
from toolcall_nb.notebook import first_run
from toolcall_nb.notebook.first_run import EarlyImports

FIRST, SECOND = "early_first", "early_second"


@pytest.fixture
def events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[EventManager]:
    """IPython's events. The modules to import are two that say when they are imported."""
    for name in (FIRST, SECOND):
        (tmp_path / f"{name}.py").write_text(
            "from tests.notebook.test_early_imports import imported\nimported(__name__)\n"
        )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(first_run, "_MODULES", (FIRST, SECOND))
    GATES.update({name: threading.Event() for name in (FIRST, SECOND)})
    BEGUN.update({name: threading.Event() for name in (FIRST, SECOND)})
    shell: Any = None
    yield EventManager(shell, available_events)
    for name in (FIRST, SECOND):
        GATES[name].set()
        sys.modules.pop(name, None)


GATES: dict[str, threading.Event] = {}
BEGUN: dict[str, threading.Event] = {}


def imported(name: str) -> None:
    BEGUN[name].set()
    GATES[name].wait(10)


def ended(imports: EarlyImports) -> None:
    imports._thread.join(10)
    assert not imports._thread.is_alive()


def test_the_modules_are_imported_after_the_cell_that_loads_the_extension(events: EventManager) -> None:
    imports = EarlyImports(events)
    assert imports._thread.ident is None
    for gate in GATES.values():
        gate.set()
    events.trigger("post_run_cell", None)
    ended(imports)
    assert {FIRST, SECOND} <= sys.modules.keys()
    assert not events.callbacks["pre_run_cell"]
    assert not events.callbacks["post_run_cell"]


def test_while_a_cell_runs_no_other_module_is_begun(events: EventManager) -> None:
    imports = EarlyImports(events)
    events.trigger("post_run_cell", None)
    assert BEGUN[FIRST].wait(10)
    events.trigger("pre_run_cell", None)
    GATES[FIRST].set()
    GATES[SECOND].set()
    assert not BEGUN[SECOND].wait(0.1)
    events.trigger("post_run_cell", None)
    ended(imports)
    assert SECOND in sys.modules


def test_an_extension_that_is_unloaded_imports_nothing_more(events: EventManager) -> None:
    imports = EarlyImports(events)
    events.trigger("post_run_cell", None)
    assert BEGUN[FIRST].wait(10)
    imports.end()
    GATES[FIRST].set()
    ended(imports)
    assert SECOND not in sys.modules
    assert not events.callbacks["post_run_cell"]


def test_without_threads_nothing_is_imported_early(events: EventManager, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", fail)
    EarlyImports(events)
    events.trigger("post_run_cell", None)
    assert not events.callbacks["post_run_cell"]
    assert FIRST not in sys.modules


_STATE = """
import sys
early = get_ipython().magics_manager.registry["ToolchatMagics"].early_imports
print(early is not None, "toolcall_nb.notebook.live_display" in sys.modules)
"""


def printed(messages: Messages) -> str:
    return "".join(each["content"]["text"] for each in messages if each["msg_type"] == "stream").strip()


def test_in_a_kernel_of_a_person_the_first_run_needs_nothing_new(tmp_path: Path) -> None:
    with running_kernel(tmp_path) as kernel:
        kernel.run("%load_ext toolcall_nb", attended=True)
        pauses = count()
        while printed(kernel.run(_STATE)) != "True True":
            assert next(pauses) < 100
            time.sleep(0.1)  # the kernel is idle


def test_in_a_kernel_without_a_person_nothing_is_imported_early(tmp_path: Path) -> None:
    with running_kernel(tmp_path) as kernel:
        kernel.run("%load_ext toolcall_nb", attended=False)
        assert printed(kernel.run(_STATE)) == "False False"
