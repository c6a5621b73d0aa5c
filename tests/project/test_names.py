"""Names and docstrings keep the rules of the project: one name for one thing, plain English first lines."""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "toolcall_nb"
MODULES = {
    ".".join(path.relative_to(FOLDER.parent).with_suffix("").parts).removesuffix(".__init__"): ast.parse(
        path.read_text("utf-8")
    )
    for path in sorted(FOLDER.rglob("*.py"))
}

MOMENTS = {
    *("facts", "held", "kinds", "known", "peer", "played", "said", "saved", "seen", "shown", "taken", "told"),
    *("waits", "written"),
}
"""Moments in a story, which do not say what a module contains."""

OBLIQUE = ("As", "For", "How", "Of", "To", "What", "When", "Where", "Which", "Who")
"""Words that the first line of a docstring does not begin with."""


def public_names(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Assign):
            yield from (target.id for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id


def docstrings(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text:
                yield getattr(node, "name", "module"), text


def test_no_two_modules_define_the_same_public_name() -> None:
    homes = defaultdict(set)
    for module, tree in MODULES.items():
        for name in public_names(tree):
            if not name.startswith("_"):
                homes[name].add(module)
    assert {name: sorted(modules) for name, modules in homes.items() if len(modules) > 1} == {}


@pytest.mark.parametrize("module", MODULES)
def test_a_module_is_named_for_what_it_contains(module: str) -> None:
    name = module.rpartition(".")[2]
    assert name not in sys.stdlib_module_names
    assert name not in MOMENTS


@pytest.mark.parametrize("module", MODULES)
def test_a_module_says_what_it_is_responsible_for(module: str) -> None:
    assert ast.get_docstring(MODULES[module])


@pytest.mark.parametrize("module", MODULES)
def test_each_module_that_a_docstring_names_is_there(module: str) -> None:
    for name, text in docstrings(MODULES[module]):
        for path in re.findall(r"`(toolcall_nb(?:\.[a-z_]\w*)+)", text):
            parts = path.split(".")
            home = next(".".join(parts[:end]) for end in range(len(parts), 0, -1) if ".".join(parts[:end]) in MODULES)
            rest = path[len(home) + 1 :].split(".")[0]
            assert not rest or rest in set(public_names(MODULES[home])) | _imported(MODULES[home]), f"{name}: {path}"
        for file in re.findall(r"`((?:[a-z_]+/)*[a-z_]+\.(?:py|js|css))`", text):
            assert list(FOLDER.parent.rglob(file)), f"{name}: {file}"


def _imported(tree: ast.Module) -> set[str]:
    return {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }


@pytest.mark.parametrize("module", MODULES)
def test_a_docstring_begins_with_a_verb_or_a_noun(module: str) -> None:
    begun = {name: text.split("\n")[0] for name, text in docstrings(MODULES[module])}
    assert {name: line for name, line in begun.items() if line.split(" ")[0] in OBLIQUE} == {}
