"""What is saved of a result is bounded in size and time, and says what is left out and where it is."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.kernels import running_kernel
from toolcall_nb.chat import Chat
from toolcall_nb.core.transcript import Message, State, ToolCall, Transcript
from toolcall_nb.render import mime_bundle
from toolcall_nb.tools import Outcome, Tool
from toolcall_nb.tools.execution import runner
from toolcall_nb.tools.results.json_values import to_json_value

WHOLE = "chat.outcomes['c1'].value"
MOST = 1_200_000
"""Characters of the three saved forms together."""
SOON = 60.0
"""Seconds, on a machine that does other things besides; without bounds it would be many minutes."""


class HugeRepr:
    def __repr__(self) -> str:
        return "x" * 50_000_000


class HugeHtml:
    def _repr_html_(self) -> str:
        return "<b>" + "x" * 20_000_000


class HugePicture:
    def _repr_png_(self) -> bytes:
        return b"\x89PNG\r\n\x1a\n" + bytes(20_000_000)


def cyclic() -> Any:
    items: list[Any] = [1]
    items.append({"again": items})
    return items


def deep() -> Any:
    value: Any = 0
    for _ in range(10_000):
        value = [value]
    return value


def array() -> Any:
    return pytest.importorskip("numpy").zeros((1000, 1000))


def frame() -> Any:
    return pytest.importorskip("pandas").DataFrame({"n": range(1_000_000), "text": "y"})


LARGE: dict[str, tuple[Callable[[], Any], str]] = {
    "list": (lambda: list(range(1_000_000)), "980,001 more, all in"),
    "dict": (lambda: {str(n): n for n in range(1_000_000)}, "980,001 more, all in"),
    "set": (lambda: set(range(1_000_000)), "980,001 more, all in"),
    "range": (lambda: range(10**12), "more, all in"),
    "rows": (lambda: [{"n": n, "text": "x" * 50} for n in range(100_000)], "more, all in"),
    "strings": (lambda: ["x" * 1_000] * 100_000, "more, all in"),
    "text": (lambda: "x" * 50_000_000, "49,500,000 characters left out, all in"),
    "bytes": (lambda: b"x" * 50_000_000, "<bytes: 50,000,000 bytes, all in"),
    "array": (array, "of 1,000 rows, 571 of 1,000 columns; all in"),
    "arrays": (lambda: {"a": array(), "b": [array()]}, "of 1,000 rows, 571 of 1,000 columns; all in"),
    "frame": (frame, "of 1,000,000 rows; all in"),
    "series": (lambda: frame()["n"], "of 1,000,000 rows; all in"),
    "repr": (HugeRepr, "49,500,000 characters left out, all in"),
    "html": (HugeHtml, "HugeHtml object"),
    "picture": (HugePicture, "HugePicture object"),
    "integer": (lambda: 10**100_000, "more digits than can be written, all in"),
}


def run(function: Callable[[], Any], **options: Any) -> Outcome:
    return Tool.from_function(function, name="f", **options).run({}, lambda progress: None, WHOLE)


def written(outcome: Outcome) -> tuple[Transcript, dict[str, str]]:
    call = ToolCall(
        id="c1",
        name="f",
        state=State.OUTPUT_AVAILABLE,
        input={},
        output=outcome.output,
        display=outcome.display,
        model_text=outcome.model_text,
    )
    transcript = Transcript((Message("assistant", (call,)),))
    return transcript, mime_bundle(transcript)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", LARGE)
def test_a_large_result_is_saved_in_part_and_says_how_much_is_left_out_and_where_it_is(name: str) -> None:
    make, says = LARGE[name]
    value = make()
    began = time.monotonic()
    outcome = run(lambda: value)
    transcript, saved = written(outcome)
    assert time.monotonic() - began < SOON
    assert outcome.error is None
    assert outcome.value is value
    assert sum(map(len, saved.values())) < MOST
    assert says in str(outcome.output)
    assert says in saved["text/markdown"].replace("\n>     ", "\n").replace("\n>   ", "\n")
    assert ("all in " + WHOLE in str(outcome.output)) == ("all in" in says)
    assert Transcript.from_markdown(saved["text/markdown"]) == transcript


@pytest.mark.parametrize("make", [HugeHtml, HugePicture])
def test_a_display_that_is_too_large_says_so_and_where_all_of_it_is(make: Callable[[], Any]) -> None:
    (note,) = (run(make).display or {}).values()
    assert note.startswith("*Too large to be kept: 2")
    assert WHOLE in note


def test_values_after_a_large_one_are_kept() -> None:
    value = {"log": "x" * 10_000_000, "rows": list(range(1_000_000)), "status": "ok", "codes": [1, 2, 3]}
    found = run(lambda: value).output
    assert (found["status"], found["codes"], found["rows"][:2]) == ("ok", [1, 2, 3], [0, 1])


def test_a_value_within_the_limits_is_kept_whole() -> None:
    value = {"rows": [{"n": n, "text": "x" * 20} for n in range(5_000)], "log": "y" * 300_000}
    assert run(lambda: value).output == value


def test_a_large_set_gives_the_same_output_each_time() -> None:
    names = {f"name {number}" for number in range(50_000)}
    assert to_json_value(names) == to_json_value(set(sorted(names, reverse=True)))


@pytest.mark.parametrize("make", [cyclic, deep])
def test_cyclic_and_deep_values_are_bounded(make: Callable[[], Any]) -> None:
    transcript, saved = written(run(make))
    assert Transcript.from_markdown(saved["text/markdown"]) == transcript


def test_the_model_is_sent_as_much_as_the_tool_s_limit_allows() -> None:
    outcome = run(lambda: "x" * 2_000_000, limit=1_000_000)
    assert outcome.model_text is not None
    assert len(outcome.model_text) > 999_000
    assert "left out" in outcome.model_text
    text = str(run(lambda: list(range(1_000_000))).model_text)
    *kept, note = json.loads(text)
    assert len(kept) > 3_000
    assert len(text) < 20_200
    assert note == f"… {1_000_000 - len(kept):,} more, all in {WHOLE}"


@pytest.mark.parametrize("wrap", [lambda text: text, lambda text: {"log": text}, lambda text: ["first", [text]]])
def test_the_model_is_sent_the_size_of_what_there_was_and_not_of_a_copy(wrap: Callable[[str], Any]) -> None:
    text = str(run(lambda: wrap("x" * 11_000_000)).model_text)
    kept = text.count("x")
    assert f"{11_000_000 - kept:,} characters left out" in text
    assert text.count("left out") == 1


@pytest.mark.sampled(3)
@pytest.mark.parametrize("method", ["__repr__", "_repr_html_", "__iter__"])
@pytest.mark.parametrize("where", ["main thread", "another thread"])
def test_a_value_whose_display_takes_too_long_is_replaced_by_a_notice(
    method: str, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "_DISPLAY_SECONDS", 0.2)

    def take_long(self: Any) -> Any:
        time.sleep(600)

    bases = (list,) if method == "__iter__" else (object,)
    slow = type("Slow", bases, {method: take_long})()
    outcomes: list[Outcome] = []
    if where == "main thread":
        outcomes.append(run(lambda: slow))
    else:
        import threading

        thread = threading.Thread(target=lambda: outcomes.append(run(lambda: slow)))
        thread.start()
        thread.join(SOON)
    assert outcomes[0].output == f"<Slow: it takes more than 0.2 s to show, it is in {WHOLE}>"
    assert outcomes[0].value is slow


def test_an_error_text_is_bounded() -> None:
    def f() -> None:
        raise ValueError("x" * 10_000_000)

    assert len(run(f).error or "") < 600_000


def test_the_expression_in_the_saved_text_evaluates_to_the_value() -> None:
    def numbers() -> list[int]:
        """Many."""
        return list(range(100_000))

    chat = Chat("mock:call", tools=[numbers], speed=None)
    chat.send("numbers")
    (call,) = chat.calls.values()
    output: Any = call.output
    name = output[-1].rpartition("all in ")[2]
    assert eval(name, {"chat": chat}) == list(range(100_000))


def test_a_large_array_leaves_a_small_cell_in_a_kernel(tmp_path: Any) -> None:
    with running_kernel(tmp_path) as kernel:
        kernel.run(
            "%load_ext toolcall_nb\nimport numpy\nfrom toolcall_nb import tool\n"
            "@tool\ndef matrix():\n    'A matrix.'\n    return numpy.ones((1000, 1000))"
        )
        shown = kernel.run("%%toolchat --model mock:call --tools matrix\nmatrix", attended=False)
        saved = [m["content"]["data"] for m in shown if m["msg_type"] == "display_data"]
        assert sum(len(text) for bundle in saved for text in bundle.values()) < 100_000
        assert " of 1,000 columns; all in chat.outcomes[" in saved[-1]["text/markdown"]
