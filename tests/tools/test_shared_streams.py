"""The streams of the process, which tools share with the code that runs after them."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from typing import Any

import pytest

from toolcall_nb.tools import as_tool
from toolcall_nb.tools.output import Log


def remove(name: str) -> None:
    setattr(sys, name, None)


def close(name: str) -> None:
    getattr(sys, name).close()


def close_in_with(name: str) -> None:
    with getattr(sys, name) as stream:
        stream.write("within")


def replace_by_closed(name: str) -> None:
    closed = io.StringIO()
    closed.close()
    setattr(sys, name, closed)


def text_stream() -> Any:
    return io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True)


@pytest.mark.parametrize("name", ["stdout", "stderr"])
@pytest.mark.parametrize("harm", [remove, close, close_in_with, replace_by_closed])
@pytest.mark.parametrize("make", [text_stream, io.StringIO])
def test_a_tool_cannot_take_the_streams_from_the_code_after_it(
    make: Callable[[], Any], harm: Callable[[str], None], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = make()
    monkeypatch.setattr(sys, name, stream)

    def tool() -> str:
        print("before", file=getattr(sys, name))
        harm(name)
        return "done"

    printed: list[str] = []

    def listen(progress: Any) -> None:
        if isinstance(progress, Log):
            printed.append(progress.text)

    outcome = as_tool(tool).run({}, listen)
    assert (outcome.value, outcome.error) == ("done", None)
    assert "before" in "".join(printed)
    assert getattr(sys, name) is stream
    print("after", file=stream)
    written = stream.getvalue() if isinstance(stream, io.StringIO) else stream.buffer.getvalue().decode()
    assert written == "after\n"


def test_a_stream_can_be_closed_after_the_tool(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = text_stream()
    monkeypatch.setattr(sys, "stdout", stream)

    def tool() -> None:
        print("within")

    as_tool(tool).run({}, lambda _: None)
    stream.close()
    assert stream.closed
