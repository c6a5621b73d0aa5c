"""The examples of docs/tracing.md print what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from opentelemetry import trace
from opentelemetry.util._once import Once

from toolcall_nb.tools import registry

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "tracing.md").read_text("utf-8")


def test_the_examples_print_what_the_page_says(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", None)
    monkeypatch.setattr(trace, "_TRACER_PROVIDER_SET_ONCE", Once())
    blocks = re.findall(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```$)?", PAGE, re.MULTILINE | re.DOTALL)
    assert [bool(printed) for _, printed in blocks] == [False, True, True]
    namespace: dict[str, object] = {}
    for code, expected in blocks:
        exec(compile(code, "docs/tracing.md", "exec"), namespace)
        printed = capsys.readouterr().out
        if expected:
            assert printed.rstrip() == expected.rstrip()
        else:  # the cards, in the form of a terminal
            assert "trip · Completed" in printed
    for name in ("weather", "trip"):
        registry.remove(name)
