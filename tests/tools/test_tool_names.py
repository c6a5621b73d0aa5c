"""The tool that a name means: in the magic, in a chat, on the command line."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.kernels import running_kernel
from toolcall_nb.chat import Chat
from toolcall_nb.errors import UsageError
from toolcall_nb.tools import Tool, registry
from toolcall_nb.tools.built_in import BUILT_IN_NAMES, built_in_tool
from toolcall_nb.tools.sources import tool_names, tools_named

MODULE = """
import functools
from toolcall_nb import tool
from toolcall_nb.tools import Registry

def imported(x: int) -> int:
    return x

@tool
def weather(city: str) -> str:
    "The weather."
    return city

@tool(name="forecast")
def _inner(city: str) -> str:
    return city

@tool(into=Registry())
def elsewhere(x: int) -> int:
    return x

server = [imported]

class Caller:
    def __call__(self, x: int) -> int:
        return x

    def method(self, x: int) -> int:
        return x
"""


@pytest.fixture
def notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Runs code as the cells of a notebook do, and holds its variables."""
    (tmp_path / "mine.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    before = [*registry]
    variables: dict[str, Any] = {"__name__": "__main__", "open": open}

    def run(code: str) -> dict[str, Any]:
        exec(compile(code, "<cell>", "exec"), variables)
        return variables

    run("from mine import *\nfrom mine import _inner\nfrom toolcall_nb import show\nfrom json import dumps\nimport os")
    yield SimpleNamespace(run=run, variables=variables)
    for name in set(registry) - set(before):
        registry.remove(name)


def only(name: str, variables: dict[str, Any]) -> Tool:
    (found,) = tools_named(name, variables)
    return found


@pytest.mark.parametrize("name", BUILT_IN_NAMES)
def test_a_built_in_tool_is_meant_by_its_name_whatever_was_imported_under_it(notebook: Any, name: str) -> None:
    own = built_in_tool(name)
    notebook.run(f"from toolcall_nb import show as {name}")
    assert own is not None
    assert only(name, notebook.variables).function is own.function
    assert only(name, notebook.run(f"{name} = 3")).function is own.function
    assert only(name, notebook.run(f"from mine import imported as {name}")).function is own.function


@pytest.mark.parametrize(
    ("setup", "name"),
    [
        ("", "open"),
        ("", "print"),
        ("", "dumps"),
        ("", "imported"),
        ("", "Caller"),
        ("alias = imported", "alias"),
        ("alias = os.system", "alias"),
        ("alias = open", "alias"),
        ("import functools\nalias = functools.partial(imported, 1)", "alias"),
        ("alias = Caller()", "alias"),
        ("alias = Caller().method", "alias"),
        ("alias = os.path", "alias"),
        ("class Own: pass", "Own"),
        ("alias = 'text'", "alias"),
        ("alias = ['text']", "alias"),
        ("alias = []", "alias"),
    ],
)
def test_imported_functions_are_not_tools(notebook: Any, setup: str, name: str) -> None:
    notebook.run(setup)
    with pytest.raises(UsageError) as caught:
        tools_named(name, notebook.variables)
    assert repr(name) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert name not in tool_names(notebook.variables)


def test_a_refusal_says_where_a_function_is_from_and_what_to_do(notebook: Any) -> None:
    notebook.run("alias = imported")
    with pytest.raises(UsageError, match=re.escape("'alias' is the function mine.imported here, which the notebook")):
        tools_named("alias", notebook.variables)
    with pytest.raises(UsageError, match=re.escape("make a tool of it first: tool(alias)")):
        tools_named("alias", notebook.variables)


@pytest.mark.parametrize(
    "code",
    [
        "def own(x: int) -> int:\n    return x",
        "own = lambda x: x",
        "import functools\n@functools.lru_cache\ndef own(x: int) -> int:\n    return x",
        "import functools\ndef two(x: int, y: int) -> int:\n    return x\nown = functools.partial(two, y=1)",
        "def other(x: int) -> int:\n    return x\nown = other",
        "class Own:\n    def __call__(self, x: int) -> int:\n        return x\nown = Own()",
        "class Own:\n    def method(self, x: int) -> int:\n        return x\nown = Own().method",
        "exec('def own(x: int) -> int:\\n    return x')",
        "import functools\ndef logged(f):\n    @functools.wraps(f)\n    def call(*a, **k):\n        return f(*a, **k)\n"
        "    return call\n@logged\ndef own(x: int) -> int:\n    return x",
    ],
)
def test_what_the_notebook_defines_is_a_tool_under_the_variables_name(notebook: Any, code: str) -> None:
    tool = only("own", notebook.run(code))
    assert tool.name == "own"
    assert tool.run({"x": 4}).value == 4
    assert "own" in tool_names(notebook.variables)


def test_a_function_of_a_script_that_the_notebook_ran_counts_as_its_own(notebook: Any) -> None:
    script: dict[str, Any] = {"__name__": "__main__"}  # the namespace that %run makes
    exec("def ran(x: int) -> int:\n    return x", script)
    notebook.variables["ran"] = script["ran"]
    assert only("ran", notebook.variables).run({"x": 1}).value == 1


def test_a_tool_made_with_the_decorator_is_one_wherever_it_was_made(notebook: Any) -> None:
    assert only("weather", notebook.variables) is registry["weather"]
    assert only("forecast", notebook.variables) is registry["forecast"]
    assert only("_inner", notebook.variables) is registry["forecast"]
    assert only("elsewhere", notebook.variables).name == "elsewhere"
    assert only("alias", notebook.run("alias = weather")) is registry["weather"]


def test_a_variable_that_holds_tools_means_all_of_them(notebook: Any) -> None:
    notebook.run("from toolcall_nb.tools import Registry, Tool\ndef own(x: int) -> int:\n    return x")
    notebook.run(
        "several = [own, weather]\nholds = Registry([own])\none = Tool.from_function(imported)\nfns = {'a': own}"
    )
    assert [tool.name for tool in tools_named("several", notebook.variables)] == ["own", "weather"]
    assert [tool.name for tool in tools_named("holds", notebook.variables)] == ["own"]
    assert [tool.name for tool in tools_named("one", notebook.variables)] == ["imported"]
    assert [tool.name for tool in tools_named("fns", notebook.variables)] == ["a"]
    assert [tool.name for tool in tools_named("server", notebook.variables)] == ["imported"]


@pytest.mark.parametrize(
    ("code", "name", "both"),
    [
        ("def show(x: int): ...", "show", ["the built-in tool show", "__main__.show"]),
        ("def bash(x: int): ...", "bash", ["the built-in tool bash", "__main__.bash"]),
        ("@tool\ndef edit(x: int): ...", "edit", ["the built-in tool edit", "__main__:edit"]),
        ("def weather(x: int): ...", "weather", ["mine:weather", "__main__.weather"]),
        ("several = [imported]\nedit = several", "edit", ["the built-in tool edit", "the notebook's edit"]),
    ],
)
def test_an_ambiguous_name_is_an_error_that_names_both_tools(
    notebook: Any, code: str, name: str, both: list[str]
) -> None:
    notebook.run(code)
    with pytest.raises(UsageError) as caught:
        tools_named(name, notebook.variables)
    assert [claim for claim in both if claim not in str(caught.value)] == []
    assert name not in tool_names(notebook.variables)


def test_every_name_that_is_offered_resolves(notebook: Any) -> None:
    notebook.run("def own(x: int) -> int:\n    return x\nseveral = [own]\ndef show(x: int): ...\ncount = 3")
    names = tool_names(notebook.variables)
    assert {"weather", "forecast", "own", "several", "edit", "bash"} <= set(names)
    assert {"show", "count", "open", "imported", "os", "_inner"}.isdisjoint(names)
    for name in names:
        assert tools_named(name, notebook.variables)


def test_a_chat_resolves_names_as_the_magic_does(notebook: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    notebook.run("def own(x: int) -> int:\n    return x")
    monkeypatch.setitem(sys.modules, "__main__", SimpleNamespace(**notebook.variables))
    assert list(Chat(tools=["show", "weather", "own"]).tools) == ["show", "weather", "own"]
    assert list(Chat(tools="edit, weather").tools) == ["edit", "weather"]
    with pytest.raises(UsageError, match=r"'dumps' is the function json\.dumps"):
        Chat(tools=["dumps"])
    with pytest.raises(UsageError, match=r"no tool or function 'wether'\. Did you mean 'weather'"):
        Chat(tools=["wether"])


def test_the_command_line_takes_a_module_s_functions_by_module_and_name(notebook: Any) -> None:
    from toolcall_nb.cli.chat_command import named_tools

    assert [tool.name for tool in named_tools("show,mine:imported,mine:server,weather")] == [
        "show",
        "imported",
        "imported",
        "weather",
    ]
    assert sorted(tool.name for tool in named_tools("mine")) == ["forecast", "weather"]
    with pytest.raises(UsageError, match="has no 'nothing'"):
        [*named_tools("mine:nothing")]
    with pytest.raises(UsageError, match="is not a tool"):
        [*named_tools("mine:__doc__")]


def test_in_a_kernel_a_name_means_the_built_in_tool_or_what_a_cell_or_a_script_defines(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("def ran(x: int) -> int:\n    return x\n")
    cells = [
        "%load_ext toolcall_nb\nfrom toolcall_nb import show\nfrom json import dumps\n%run script.py",
        "def own(x: int) -> int:\n    return x",
        "%%toolchat --model mock:text --speed 0 --tools edit,show,own,ran\nHello",
    ]
    with running_kernel(tmp_path) as kernel:
        for cell in cells:
            assert [message for message in kernel.run(cell) if message["msg_type"] == "error"] == []
        (answer,) = printed(kernel.run("print([(t.name, t.function.__module__) for t in chat.tools.values()])"))
        assert answer.strip() == str(
            [
                ("edit", "toolcall_nb.tools.built_in.files"),
                ("show", "toolcall_nb.tools.built_in.files"),
                ("own", "__main__"),
                ("ran", "__main__"),
            ]
        )
        for name in ("open", "dumps"):
            (said,) = printed(kernel.run(f"%%toolchat --model mock:text --tools {name}\nHello"))
            assert f"'{name}' is the function" in said
            assert len(said.strip().splitlines()) == 1


def printed(messages: list[dict[str, Any]]) -> list[str]:
    return [message["content"]["text"] for message in messages if message["msg_type"] == "stream"]
