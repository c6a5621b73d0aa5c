"""Measures the size and number of messages to the page, and the size of saved outputs."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

from jupyter_client.session import Session

from tests.benchmarks.documents import deltas, flushes, mixed
from tests.benchmarks.report import Row
from tests.benchmarks.scale import Scale
from tests.support import saved_runs
from toolcall_nb.core.transcript import Transcript
from toolcall_nb.dialects import detector
from toolcall_nb.live_runs.document import LiveDocument
from toolcall_nb.live_runs.pacer import Pacer
from toolcall_nb.render import LiveHtml

__all__ = ["Sent", "count", "encoded", "rows"]

_TOGETHER = 8
_DELTAS_A_SECOND = 500
_TOKENS_A_SECOND = 100
_SAVED = 50


def encoded(step: dict[str, Any]) -> int:
    """Returns the bytes of a message's content, as jupyter_client packs it."""
    return len(json.dumps(step, ensure_ascii=False, allow_nan=False).encode())


class Sent:
    """A live document and the messages that it sends to its page."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self.html = LiveHtml()
        self.document = LiveDocument(self.html, self.messages.append)
        self._detector = detector("callout")

    def feed(self, text: str) -> None:
        """Applies text; the next flush sends it."""
        for event in self._detector.feed(text):
            self.document.apply(event)

    def close(self) -> None:
        """Ends the text and sends the rest."""
        for event in self._detector.close():
            self.document.apply(event)
        self.document.flush()

    @property
    def html_bytes(self) -> int:
        """The bytes of the HTML in the patches."""
        return sum(_html_bytes(patch) for step in self.messages for patch in step["patches"])

    @property
    def patch_bytes(self) -> int:
        """The bytes of the patches as JSON."""
        return sum(encoded(step["patches"]) for step in self.messages)


def _html_bytes(patch: list[Any]) -> int:
    """Returns the bytes of HTML in one patch, in the form of `toolcall_nb.live_runs.document.shortened`."""
    is_splice = len(patch) > 1 and isinstance(patch[1], int)
    return len((patch[2] if is_splice else patch[-1] if len(patch) > 1 else "").encode())


def count(text: str, together: int = _TOGETHER) -> Sent:
    """Shows ``text`` with a flush after every ``together`` deltas."""
    sent = Sent()
    for number, delta in enumerate(deltas(text)):
        sent.feed(delta)
        if number % together == together - 1:
            sent.document.flush()
    sent.close()
    return sent


def rows(scale: Scale) -> Iterator[Row]:
    """Counts the bytes exactly, and the messages in real time."""
    text = mixed(scale.documents[-2])
    sent, joined = count(text), _joined(text)
    final = sum(len(patch[4].encode()) for patch in sent.html.snapshot())
    words = f"{_TOGETHER} deltas a flush"
    detail = f"{len(sent.messages)} messages for {final} bytes of HTML; {{:.2f}} if the deltas of a flush came as one"
    html, patches = joined.html_bytes / final, joined.patch_bytes / final
    yield Row(f"HTML sent / H, {words}", sent.html_bytes / final, "H", 1.3, 1.15, detail.format(html))
    yield Row(f"encoded patches / H, {words}", sent.patch_bytes / final, "H", 2, 1.4, detail.format(patches))
    yield Row("messages for deltas that change nothing", _needless(text), "", 0, 0)
    detail = f"{_DELTAS_A_SECOND} deltas a second come in; nothing tells how the page keeps up"
    sent = _paced(text, scale.seconds, _DELTAS_A_SECOND)
    yield Row("messages a second", len(sent.messages) / scale.seconds, "/s", 30, 20, detail)
    sent = _paced(text, scale.seconds, _TOKENS_A_SECOND)
    size = sum(map(_wire_bytes, sent.messages)) / scale.seconds
    contents = sum(map(encoded, sent.messages)) / scale.seconds
    detail = f"{len(sent.messages) / scale.seconds:.0f} messages a second; without envelopes {contents / 1e3:.1f} kB/s"
    yield Row(f"kB/s on the wire at {_TOKENS_A_SECOND} tokens a second", size / 1e3, "kB/s", 16, 8, detail)
    yield from _saved()


def _saved() -> Iterator[Row]:
    """Counts what a notebook saves of finished runs."""
    yield Row("saved HTML of one call", saved_runs.size(_html(saved_runs.short_run())) / 1e3, "kB", 4, 2)
    runs = [saved_runs.usual_run(number) for number in range(_SAVED)]
    markdown = sum(saved_runs.size(run.to_markdown()) for run in runs)
    html = sum(saved_runs.size(_html(run)) for run in runs)
    detail = f"{html / _SAVED / 1e3:.1f} kB for {markdown / _SAVED / 1e3:.1f} kB of Markdown each"
    yield Row(f"saved HTML of {_SAVED} runs / their Markdown", html / markdown, "", 4, 2.5, detail)


def _html(run: Transcript) -> str:
    return saved_runs.saved(run)["text/html"]


def _joined(text: str) -> Sent:
    """Returns the document as if all deltas of a flush were one."""
    sent = Sent()
    for piece in flushes(text, _TOGETHER):
        sent.feed(piece)
        sent.document.flush()
    sent.close()
    return sent


def _needless(text: str) -> int:
    """Returns the number of messages without a visible change, for a flush at each delta."""
    sent, shown, needless = Sent(), "", 0
    for delta in deltas(text)[:2_000]:
        before = len(sent.messages)
        sent.feed(delta)
        sent.document.flush()
        html = sent.html.html
        needless += len(sent.messages) > before and html == shown and not set(sent.messages[-1]) & {"say", "status"}
        shown = html
    return needless


def _paced(text: str, seconds: float, deltas_a_second: int) -> Sent:
    """Shows ``text`` for so long, with messages as often as a page without delay gets them."""
    sent = Sent()
    pacer = Pacer(sent.document.flush)
    end = time.monotonic() + seconds
    for delta in deltas(text):
        if time.monotonic() > end:
            break
        sent.feed(delta)
        pacer.wake()
        time.sleep(1 / deltas_a_second)
    pacer.close()
    return sent


def _wire_bytes(step: dict[str, Any]) -> int:
    """Returns the bytes of a step as the message of a comm that a cell's request has caused."""
    session = Session(key=b"key")
    parent = session.msg_header("execute_request")
    content = {"comm_id": "0" * 32, "data": {"method": "custom", "content": step}}
    return sum(map(len, session.serialize(session.msg("comm_msg", content, parent=parent))))
