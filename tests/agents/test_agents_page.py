"""The page about agents: its examples print what it says, and its table lists the frameworks."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

from toolcall_nb.agents import FRAMEWORKS

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "agents.md").read_text("utf-8")


def test_the_examples_print_what_the_page_says() -> None:
    namespace: dict[str, Any] = {}
    examples = re.findall(r"```python\n(.*?)```\n(?:\n```text\n(.*?)```)?", PAGE, re.DOTALL)
    assert len(examples) >= 4
    for code, expected in examples:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code, namespace)
        assert printed.getvalue() == expected


def test_the_table_lists_the_frameworks_with_their_versions() -> None:
    rows = re.findall(r"^\| (.+?) \| `(.+?)` \| (\S+) or later \|", PAGE, re.MULTILINE)
    assert rows == [(known.title, known.package, known.minimum) for known in FRAMEWORKS]
