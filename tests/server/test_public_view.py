"""Tracebacks and error details stay in the server's log and store, and never reach a client."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.servers import Gated, ask, call, serving, words
from toolcall_nb.core import events as ev
from toolcall_nb.core.transcript import Message, TextPart, Transcript
from toolcall_nb.errors import ModelError
from toolcall_nb.server.public_view import public_event, public_transcript

SECRET = "line-of-the-servers-code"


def broken(city: str) -> str:
    """Fails."""
    raise ValueError("the reason")  # line-of-the-servers-code


class Failing:
    name = "failing"

    def stream(self, messages: Any, tools: Any) -> Iterator[ev.Event]:
        raise ModelError("The model cannot be had. Start it.", details=f"what a program said: {SECRET}")


BODIES = {
    "chat": {"message": "Go", "conversationId": "t"},
    "ui": {"id": "t", "messages": [{"id": "u", "role": "user", "parts": [{"type": "text", "text": "Go"}]}]},
    "ag-ui": {"threadId": "t", "runId": "r", "messages": [{"id": "u", "role": "user", "content": "Go"}]},
}


@pytest.mark.parametrize("wire", BODIES)
@pytest.mark.parametrize("what", ["tool", "model"])
def test_a_failure_is_sent_without_the_traceback(
    wire: str, what: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model = Gated(call("c", "broken", city="Rome"), words("So it is.")) if what == "tool" else Failing()
    reason = "the reason" if what == "tool" else "The model cannot be had. Start it."
    with serving(model, tools=[broken], store=str(tmp_path)) as client:
        said = client.post("/api/chat", json=BODIES[wire]).text
        seen = [client.get("/api/threads/t", headers={"accept": kind}).text for kind in _FORMS]
        drawn = client.get("/api/threads/t/stream?wire=live").text
        assert reason in said or wire == "chat"
        assert all(reason in each for each in (*seen, drawn))
        assert not [each for each in (said, *seen, drawn) if SECRET in each]
    assert SECRET in (tmp_path / "t.md").read_text()
    assert SECRET in caplog.text


_FORMS = ("text/markdown", "application/json", "text/html")


def test_after_a_restart_it_is_the_same(tmp_path: Path) -> None:
    with serving(Gated(call("c", "broken", city="Rome"), words("So.")), tools=[broken], store=str(tmp_path)) as client:
        ask(client)
    with serving(Gated(words("Again.")), store=str(tmp_path)) as client:
        ask(client, "And?")
        for path in ("/api/threads/t", "/api/threads/t/stream?wire=live"):
            text = client.get(path).text
            assert "the reason" in text
            assert SECRET not in text


def test_other_events_are_unchanged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    said = Transcript((Message("user", (TextPart("?"),)),))
    assert public_transcript(said) == said
    for event in (ev.TextDelta("t", "x"), ev.Error("Gone."), ev.ToolOutputError("c", "no")):
        assert public_event(event) is event
    assert caplog.records == []


def test_logged_text_of_others_cannot_control_a_terminal_or_forge_a_record(
    caplog: pytest.LogCaptureFixture,
) -> None:
    forged = "WARNING:root:x\x1b]52;c;ZXZpbA==\x07\x1b[2J\r\nWARNING:root:All is well\u202e"
    public_event(ev.Error(forged, details=forged))
    public_event(ev.ToolOutputError(forged, "No", traceback=forged))
    for record in caplog.records:
        assert not {"\x1b", "\x07", "\r", "\u202e"} & set(record.getMessage())
        assert "\nWARNING" not in record.getMessage()
    assert len(caplog.records) == 2
