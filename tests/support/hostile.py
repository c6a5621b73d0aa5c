"""Hostile texts, and every place of a transcript where text of others can stand.

`payloads` are the project's own (`tests.support.hostile_payloads`, and those of the renderer's samples) and, with the
corpora, those of public projects; `tests.support.hostile_variants` makes more of each. `PLACES` puts a text into one
place, `everywhere` into all of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import pytest

from tests.fixtures.render.samples import HOSTILE, PNG
from tests.support.corpora import corpus
from tests.support.hostile_payloads import OWN, PIXEL
from tests.support.profile import IS_SEARCH
from toolcall_nb.core.events import MISSING, Diagnostic
from toolcall_nb.core.transcript import (
    Approval,
    CustomPart,
    DataPart,
    ErrorPart,
    FilePart,
    Message,
    Part,
    ReasoningPart,
    SourceDocumentPart,
    SourceUrlPart,
    State,
    TextPart,
    ToolCall,
    Transcript,
)

__all__ = ["END", "PLACES", "document", "everywhere", "one_of", "own_payloads", "payloads", "share", "told"]

END = "tc-hostile-end"
"""Stands, as a text of its own, behind the last part of `everywhere`: it is drawn if nothing has swallowed it."""


# Payloads -------------------------------------------------------------------------------------------------------


@cache
def own_payloads() -> tuple[str, ...]:
    """The project's own."""
    return tuple(dict.fromkeys((*HOSTILE, *(text for texts in OWN.values() for text in texts))))


@cache
def payloads() -> tuple[str, ...]:
    """The project's own and, where the corpora are, those of the corpus ``xss``; each once."""
    try:
        return tuple(dict.fromkeys((*own_payloads(), *_of_corpus())))
    except pytest.skip.Exception:  # without corpora the project's own are enough
        return own_payloads()


def _of_corpus() -> Iterator[str]:
    for path in sorted(corpus("xss").glob("*.json")):
        yield from _texts(json.loads(path.read_text("utf-8")))


def _texts(value: Any) -> Iterator[str]:
    """What is hostile in a file of the corpus: a payload, an input, or one of a list of texts."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, dict):
        here = [text for name in ("payload", "input") if isinstance(text := value.get(name), str)]
        yield from here or _texts([item for item in value.values() if isinstance(item, (list, dict))])


def one_of(texts: Sequence[str], count: int, offset: int = 0) -> list[str]:
    """``count`` of the texts, evenly taken; another offset gives others."""
    step = max(1, len(texts) // count)
    return list(texts[offset % step :: step])[:count]


def share(count: int, offset: int = 0) -> Sequence[str]:
    """So many of the payloads; in a search all of them."""
    return payloads() if IS_SEARCH else one_of(payloads(), count, offset)


# Places ---------------------------------------------------------------------------------------------------------


def _said(*parts: Part, **about: Any) -> Transcript:
    return Transcript((Message("assistant", parts, **about),))


_GIVEN: Mapping[str, Any] = {
    "id": "c",
    "name": "tool",
    "state": State.OUTPUT_AVAILABLE,
    "input": {"a": 1},
    "output": "done",
    "open": True,
}
_EMPTY = ToolCall(id="", name="", state=State.OUTPUT_AVAILABLE)


def _call(**about: Any) -> Transcript:
    return _said(ToolCall(**{**_GIVEN, **about}))


def _shown(kind: str, value: Any) -> Transcript:
    return _call(display={kind: value})


def _approval(text: str, state: State = State.OUTPUT_AVAILABLE, **about: Any) -> Transcript:
    return _call(state=state, approval=Approval(id="a", reason=text, **about))


PLACES: Mapping[str, Callable[[str], Transcript]] = {
    # What is said
    "assistant text": lambda text: _said(TextPart(text)),
    "text's metadata": lambda text: _said(TextPart("x", {text: text})),
    "reasoning": lambda text: _said(ReasoningPart(text)),
    "reasoning's metadata": lambda text: _said(ReasoningPart("x", {text: text})),
    "user turn": lambda text: Transcript((Message("user", (TextPart(text),)),)),
    "system turn": lambda text: Transcript((Message("system", (TextPart(text),)),)),
    "message id": lambda text: _said(TextPart("x"), id=text),
    "message metadata": lambda text: _said(TextPart("x"), metadata={text: text, "model": text, "usage": {text: text}}),
    "finish reason": lambda text: _said(TextPart("x"), finish_reason=text),
    "abort reason": lambda text: _said(TextPart("x"), aborted=text),
    "title of the whole": lambda text: Transcript((), {"title": text}),
    "metadata of the whole": lambda text: Transcript((), {text: text, "model": text}),
    "diagnostic": lambda text: Transcript((), {}, (Diagnostic(message=text, action=text, extra={text: text}),)),
    # A tool call's input
    "call id": lambda text: _call(id=text),
    "tool name": lambda text: _call(name=text),
    "title": lambda text: _call(title=text),
    "argument name": lambda text: _call(input={text: 1}),
    "argument value": lambda text: _call(input={"a": text}),
    "nested argument": lambda text: _call(input={"a": [{"b": [text, {text: text}]}]}),
    "input that is text": lambda text: _call(input=text),
    "input as it was": lambda text: _call(original_input={text: [text]}),
    "partial input": lambda text: _call(input=MISSING, state=State.INPUT_STREAMING, input_text=text),
    "partial JSON": lambda text: _call(
        input=MISSING, state=State.INPUT_STREAMING, input_text=json.dumps({"a": text, text: text})[:-2]
    ),
    "input that was not whole": lambda text: _call(input=MISSING, state=State.OUTPUT_ERROR, input_text=text, error="x"),
    "approval's id": lambda text: _call(state=State.APPROVAL_REQUESTED, approval=Approval(id=text)),
    "approval's reason": lambda text: _approval(text, approved=True),
    "approval's signature": lambda text: _approval("x", approved=True, signature=text),
    "reason of a denial": lambda text: _approval(text, State.OUTPUT_DENIED, approved=False),
    "provider's metadata": lambda text: _call(provider_metadata={text: text}),
    "tool's metadata": lambda text: _call(tool_metadata={text: text}),
    "unknown field": lambda text: _call(extra={text: text}),
    # A tool call's output
    "output": lambda text: _call(output=text),
    "nested output": lambda text: _call(output={text: {"a": [text, [text]]}}),
    "output as a table": lambda text: _call(output=[{text: text, "a": 1}, {text: text, "a": 2}]),
    "preliminary output": lambda text: _call(state=State.INPUT_AVAILABLE, output=text),
    "output of what was stopped": lambda text: _call(state=State.INTERRUPTED, output=[text]),
    "what the model saw": lambda text: _call(model_text=text),
    "error": lambda text: _call(state=State.OUTPUT_ERROR, error=text),
    "traceback": lambda text: _call(state=State.OUTPUT_ERROR, error="x", traceback=text),
    "log": lambda text: _call(log=f"{text}\n{text}"),
    "log with colours": lambda text: _call(log=f"\x1b[1;31m{text}\x1b[0m\r{text}\x1b]8;;{text}\x07x"),
    # A tool call's output as it displays itself
    "display text/html": lambda text: _shown("text/html", text),
    "display text/html in HTML": lambda text: _shown("text/html", f"<table><td title='{text}'>{text}</table><p>x"),
    "display text/html in lines": lambda text: _shown("text/html", ["<div>", text, f'<a href="{text}">x</a>']),
    "display text/markdown": lambda text: _shown("text/markdown", text),
    "display text/latex": lambda text: _shown("text/latex", text),
    "display image/svg+xml": lambda text: _shown(
        "image/svg+xml", f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"><text>{text}</text></svg>'
    ),
    "display image/svg+xml, attributes": lambda text: _shown("image/svg+xml", f"<svg {text}>{text}</svg>"),
    "display image/png": lambda text: _shown("image/png", text),
    "display application/json": lambda text: _shown("application/json", {text: [text]}),
    "display application/javascript": lambda text: _shown("application/javascript", text),
    "display text/plain": lambda text: _shown("text/plain", text),
    "name of a picture": lambda text: _call(output=text, display={"image/png": PNG, "text/plain": text}),
    "display of another type": lambda text: _shown(text, text),
    # The other parts
    "source's id": lambda text: _said(SourceUrlPart(text, "https://example.org/", "x")),
    "source's URL": lambda text: _said(SourceUrlPart("s", text, "x"), SourceUrlPart("s", text)),
    "source's URL, after a scheme": lambda text: _said(SourceUrlPart("s", f"https://example.org/{text}", "x")),
    "source's title": lambda text: _said(SourceUrlPart("s", "https://example.org/", text, {text: text})),
    "document's id": lambda text: _said(SourceDocumentPart(text, "text/plain", "x", "y", {text: text})),
    "document's title": lambda text: _said(SourceDocumentPart("d", "text/plain", text)),
    "file name": lambda text: _said(SourceDocumentPart("d", "text/plain", "x", text)),
    "document's media type": lambda text: _said(SourceDocumentPart("d", text, "x", "y")),
    "file's URL": lambda text: _said(FilePart(text, "image/png", {text: text})),
    "file's data, a picture": lambda text: _said(FilePart(f"data:image/gif;base64,{PIXEL}{text}", "image/gif")),
    "file's data, a text": lambda text: _said(FilePart(f"data:text/csv,{text}", "text/csv", reasoning=True)),
    "file's data, a page": lambda text: _said(FilePart(f"data:text/html,{text}", "text/html")),
    "media type": lambda text: _said(FilePart("https://example.org/f", text), FilePart("data:text/plain,x", text)),
    "picture's media type": lambda text: _said(FilePart(f"data:image/gif;base64,{PIXEL}", text)),
    "data part": lambda text: _said(DataPart("d", {text: [text, {text: text}]})),
    "data part that is text": lambda text: _said(DataPart("d", text)),
    "data part's name": lambda text: _said(DataPart(text, 1)),
    "data part's id": lambda text: _said(DataPart("d", 1, text)),
    "part of a provider": lambda text: _said(CustomPart(text)),
    "part of a provider, metadata": lambda text: _said(CustomPart("p.q", {text: text})),
    "error of the whole": lambda text: _said(ErrorPart(text)),
    "error of the whole, details": lambda text: _said(ErrorPart("x", text)),
}
"""By name, what makes a transcript with the text in that place. `tests.hostile.test_hostile` finds what is missing."""


def everywhere(text: str) -> Transcript:
    """One transcript with the text in every place, and `END` as its last text."""
    whole = [make(text) for make in PLACES.values()]
    messages = [message for one in whole for message in one.messages]
    plain = [part for message in messages if _is_plain(message) for part in message.parts]
    calls = _together([part for part in plain if isinstance(part, ToolCall)])
    parts = (*calls, *(part for part in plain if not isinstance(part, ToolCall)))
    metadata = {name: value for one in whole for name, value in one.metadata.items()}
    diagnostics = tuple(found for one in whole for found in one.diagnostics)
    others = [message for message in messages if not _is_plain(message)]
    last = (Message("assistant", parts), Message("assistant", (TextPart(END),)))
    return Transcript((*others, *last), metadata, diagnostics)


def _is_plain(message: Message) -> bool:
    """Whether it is no more than its parts, which may then stand in a message with others."""
    return message == Message("assistant", message.parts)


def told(call: ToolCall) -> dict[str, Any]:
    """What the call of a place says, beside what each such call says."""
    said = {name: getattr(call, name) for name in call.__struct_fields__ if getattr(call, name) != _GIVEN.get(name)}
    return {name: value for name, value in said.items() if name in _GIVEN or value != getattr(_EMPTY, name)}


def _together(calls: Sequence[ToolCall]) -> list[ToolCall]:
    """The calls in fewer cards: one says what others of its state leave open. An output hides behind a display."""
    cards: list[dict[str, Any]] = []
    for call in calls:
        said = told(call)
        slots = {"output" if name == "display" else name for name in said} - {"state"}
        fits = (card for card in cards if card["state"] == call.state and not slots & card["slots"])
        card = next(fits, None)
        if card is None:
            cards.append(card := {"state": call.state, "slots": set(), "said": {}})
        card["slots"] |= slots
        card["said"] |= said
    return [ToolCall(**{**_GIVEN, "id": f"c-{number}", **card["said"]}) for number, card in enumerate(cards)]


def document(texts: Sequence[str]) -> Transcript:
    """One transcript with `everywhere` of each text, and all of them in its title."""
    whole = [everywhere(text) for text in texts]
    messages = tuple(message for one in whole for message in one.messages)
    metadata = {name: value for one in whole for name, value in one.metadata.items()}
    return Transcript(messages, {**metadata, "title": " ".join(texts)})
