"""Loading the extension: what it brings, what it costs, and that it goes away whole."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell

import toolcall_nb

HEAVY = (
    "anywidget",
    "ipywidgets",
    "latex2mathml",
    "markdown_it",
    "msgspec",
    "nh3",
    "pygments",
    "rich",
    "yaml",
)


@pytest.fixture
def shell() -> Iterator[Any]:
    make: Any = InteractiveShell
    shell = make()
    yield shell
    shell.restore_sys_module_state()


def loaded_by(code: str) -> list[str]:
    """The modules that ``code`` loads in a process that has IPython already, as a kernel has."""
    script = f"""
import json, sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell()
before = set(sys.modules)
{code}
print(json.dumps(sorted(set(sys.modules) - before)))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    modules: list[str] = json.loads(done.stdout.splitlines()[-1])
    return modules


def test_loading_brings_the_magics_and_nothing_heavy() -> None:
    modules = loaded_by("shell.run_line_magic('load_ext', 'toolcall_nb')\nassert shell.find_cell_magic('toolchat')")
    assert {name.partition(".")[0] for name in modules} & set(HEAVY) == set()
    assert len([name for name in modules if name.startswith("toolcall_nb")]) <= 15


def test_the_view_of_the_first_run_brings_nothing_that_renders() -> None:
    modules = loaded_by("import toolcall_nb.notebook.widget, toolcall_nb.notebook.first_run")
    brought = {name.partition(".")[0] for name in modules} & set(HEAVY)
    assert brought == {"anywidget", "ipywidgets"}
    assert len([name for name in modules if name.startswith("toolcall_nb")]) <= 25


def test_asking_what_is_set_brings_no_renderer_and_no_widget() -> None:
    modules = {name.partition(".")[0] for name in loaded_by(
        "shell.run_line_magic('load_ext', 'toolcall_nb')\nshell.run_line_magic('toolchat', '')"
    )}  # fmt: skip
    assert modules & {"anywidget", "ipywidgets", "rich", "latex2mathml"} == set()


def test_a_run_without_a_person_brings_no_widget() -> None:
    code = (
        "shell.run_line_magic('load_ext', 'toolcall_nb')\n"
        "from toolcall_nb.notebook.run_displays import StaticDisplay\n"
        "shell.run_cell_magic('toolchat', '--speed 0', 'Hello')"
    )
    assert {name.partition(".")[0] for name in loaded_by(code)} & {"anywidget", "ipywidgets"} == set()


def test_it_loads_unloads_and_loads_again(shell: Any) -> None:
    for _ in range(2):
        shell.run_line_magic("load_ext", "toolcall_nb")
        assert shell.find_line_magic("toolchat")
        assert shell.find_cell_magic("toolchat")
        shell.run_line_magic("reload_ext", "toolcall_nb")
        assert shell.find_cell_magic("toolchat")
        shell.run_line_magic("unload_ext", "toolcall_nb")
        assert shell.find_line_magic("toolchat") is None
        assert shell.find_cell_magic("toolchat") is None


def test_unloading_leaves_nothing_behind(shell: Any) -> None:
    before = (set(shell.magics_manager.registry), list(shell.Completer.custom_matchers))
    toolcall_nb.load_ipython_extension(shell)
    toolcall_nb.unload_ipython_extension(shell)
    toolcall_nb.unload_ipython_extension(shell)
    assert (set(shell.magics_manager.registry), shell.Completer.custom_matchers) == before


def test_the_public_names_are_there_and_no_others() -> None:
    assert set(toolcall_nb.__all__) <= set(dir(toolcall_nb))
    assert all(getattr(toolcall_nb, name) is not None for name in toolcall_nb.__all__)
    with pytest.raises(AttributeError, match="nonesuch"):
        toolcall_nb.nonesuch  # noqa: B018
