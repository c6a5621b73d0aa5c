"""The examples of docs/answers.md print what the page says."""

from __future__ import annotations

import ast
import asyncio
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "answers.md").read_text("utf-8")


async def run(code: str, namespace: dict[str, Any]) -> None:
    """Runs code as a cell of a notebook, with ``await`` outside of functions."""
    compiled = compile(code, "docs/answers.md", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    result = eval(compiled, namespace)
    if inspect.isawaitable(result):
        await result


def test_the_examples_print_what_the_page_says(capsys: pytest.CaptureFixture[str]) -> None:
    async def body() -> None:
        namespace: dict[str, Any] = {"__name__": "__main__"}
        for code, printed in blocks:
            await run(code, namespace)
            assert capsys.readouterr().out.rstrip() == printed.rstrip()

    blocks = re.findall(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```$)?", PAGE, re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 4
    asyncio.run(body())
