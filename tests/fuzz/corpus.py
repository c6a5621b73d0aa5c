"""The seeds: from the project's fixtures and, if they are installed, the corpora beside the repository."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.render.samples import EVERYTHING, HOSTILE, TABLE
from tests.support.corpora import corpus
from tests.support.fixture_files import read_fixtures
from tests.support.openai_shapes import chunk, piece, reply, whole_response
from tests.support.provider_bodies import NAMES, call_reply, text_reply
from tests.support.recordings import pydantic_ai, vercel_ai
from toolcall_nb.core import events as ev
from toolcall_nb.core.events import CHUNK_TYPES, to_dict
from toolcall_nb.core.json_text import json_text
from toolcall_nb.stages import to_stages
from toolcall_nb.wire import encoder

__all__ = [
    "answers",
    "bodies",
    "callouts",
    "chunk_words",
    "chunks",
    "documents",
    "headers",
    "hostile",
    "hostile_html",
    "json_calls",
    "markdown",
    "recorded_answers",
    "recorded_items",
    "sdk_items",
    "sdk_words",
    "secrets",
    "signatures",
    "sse",
    "sse_streams",
    "stage_logs",
    "stage_words",
    "transcripts",
    "wire",
    "wire_words",
    "yaml_documents",
]

_TESTS = Path(__file__).resolve().parents[1]
_ROOMS = _TESTS.parent / "toolcall_nb"
_FEW = 6
_LONGEST = 4000


# The project's own ------------------------------------------------------------------------------------------------


def callouts() -> list[bytes]:
    """Returns the examples of the callout dialect."""
    return _inputs("callouts.md")


def signatures() -> list[bytes]:
    """Returns the examples of the signature dialect."""
    return _inputs("signature.md")


def json_calls() -> list[bytes]:
    """Returns the examples of the JSON dialect."""
    return _inputs("json_calls.md")


def markdown() -> list[bytes]:
    """Returns the examples of rendered Markdown."""
    return _inputs("flavor.md")


def _inputs(name: str) -> list[bytes]:
    return [given.encode() for _, given, _ in read_fixtures(name)]


def bodies() -> list[bytes]:
    """Returns the bodies of all callouts in the examples."""
    return [
        "".join(line.removeprefix(">").removeprefix(" ") + "\n" for line in text.split("\n")[1:]).encode()
        for text in _quotes()
    ]


def headers() -> list[bytes]:
    """Returns the first lines of all callouts in the examples, without their common beginning."""
    return [text.partition("\n")[0].removeprefix("> [!tool").strip().encode() for text in _quotes()]


def _quotes() -> Iterator[str]:
    for text in callouts() + transcripts():
        yield from re.findall(r"^ {0,3}> ?\[![^\n]*(?:\n>[^\n]*)*", text.decode(), re.MULTILINE)


def transcripts() -> list[bytes]:
    """Returns portable Markdown of every part and state, and of the examples."""
    whole = EVERYTHING.to_markdown(versioned=True)
    return [*callouts(), *(f"> [!{part}".encode() for part in whole.split("> [!")[1:]), whole.encode()[:_LONGEST]]


def chunks() -> list[bytes]:
    """Returns every part and state as lines of chunks, several per seed."""
    lines = [json_text(to_dict(event)) for event in EVERYTHING.events()]
    return ["\n".join(lines[at : at + _FEW]).encode() for at in range(0, len(lines), _FEW)]


def chunk_words() -> tuple[str, ...]:
    """Returns the types and the fields of chunks."""
    return (*CHUNK_TYPES, *_names("events.py"))


def wire(name: str) -> Callable[[], list[bytes]]:
    """Makes a function that returns responses of this wire with every part and state, in pieces and as one."""

    def seeds() -> list[bytes]:
        events = list(EVERYTHING.events())
        parts = [_response(name, events[at : at + _FEW]) for at in range(0, len(events), _FEW)]
        return [*parts, b"".join(parts)[:_LONGEST]]

    return seeds


def _response(name: str, events: Iterable[ev.Event]) -> bytes:
    writer = encoder(name, numbered=True)
    return b"".join(map(writer.encode, events)) + writer.close()


def wire_words(name: str) -> tuple[str, ...]:
    """Returns the string literals in the code of a wire."""
    files = {"ag-ui": "wire/ag_ui/*.py", "chat": "wire/chat.py", "provider": "wire/provider.py", "ui": "events.py"}
    return _names(files[name])


def sse() -> list[bytes]:
    """Returns event streams with every field, line end and byte order mark."""
    return [
        b"\xef\xbb\xbfdata: a\n\nevent: e\nid: 1\nretry: 10\ndata: x\ndata\ndata:y\n\n",
        b": hi\r\rdata: a\r\n\r\nid: \0\nid\ndata: \xff\xf0\x9f\n\ndata: z",
        *wire("chat")(),
    ]


def answers() -> list[bytes]:
    """Returns small responses of every wire and of four providers."""
    own = [body for name in ("chat", "ui", "ag-ui", "provider") for body in wire(name)()[:_FEW]]
    theirs = [body for name in NAMES for body in (text_reply(name, "Hi"), call_reply(name, "c1", "f", {"a": 1}))]
    return [*own, *map(str.encode, theirs)]


def stage_logs() -> list[bytes]:
    """Returns the stage logs of the examples, and one of every state."""
    whole = "\n".join(map(json_text, to_stages(EVERYTHING.events())))
    return [
        *_inputs("stage_logs.md"),
        *_inputs("broken_stage_logs.md"),
        *_inputs("stages.md"),
        whole.encode()[:_LONGEST],
    ]


def stage_words() -> tuple[str, ...]:
    """Returns the string literals in the code of stages."""
    return _names("stages/*.py")


def sdk_items() -> list[bytes]:
    """Returns a few items of each kind of stream, and complete replies, as lines of JSON."""
    return [("\n".join(map(json.dumps, items))).encode() for items in _SDK_ITEMS]


def sdk_words() -> tuple[str, ...]:
    """Returns the string literals in the code of the adapters."""
    return _names("adapters/*.py")


def _names(files: str) -> tuple[str, ...]:
    code = "".join(path.read_text("utf-8") for path in sorted(_ROOMS.glob(files)))
    return tuple(sorted({f'"{name}"' for name in re.findall(r'"([A-Za-z][\w.-]{1,40})"', code)}))


def hostile() -> list[bytes]:
    """Returns hostile texts for a page or a terminal."""
    odd = ["\x1b[2J\x1b]0;t\x07x\x9b31m", "exe\u202egnp.txt\u200b", "a\rb\r\nc\x08", "10%\r20%\r\ndone", TABLE]
    return [text.encode() for text in (*HOSTILE, *odd)]


def secrets() -> list[bytes]:
    """Returns seeds of a secret, a line end, and a text that contains the secret."""
    key = "sk-abcdefgh12345678"
    return [
        f"{key}\nAuthorization: Bearer {key}".encode(),
        f"{key}\n{json.dumps({'key': key, 'url': f'https://u:{key}@h/'})}".encode(),
        b'p\xc3\xa4ss wort/"\npassword=p%C3%A4ss%20wort%2F%22 "p\\u00e4ss wort/\\""',
        b"\nAKIAABCDEFGHIJKLMNOP token: eyJhbGciOi.eyJhbGciOi.x",
    ]


_HI: list[dict[str, Any]] = [{"type": "text", "text": "Hi"}]
_CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
_SDK_ITEMS: list[list[Any]] = [
    [chunk({"content": "Hi"}), chunk({"tool_calls": [piece('{"a"', "f", "c1")]}), chunk({}, "tool_calls")],
    [reply({"role": "assistant", "content": "Hi", "tool_calls": [_CALL]})],
    [whole_response({"type": "message", "content": [{"type": "output_text", "text": "Hi"}]})],
    [
        {"type": "response.output_item.added", "output_index": 0, "item": {"type": "function_call", "id": "i"}},
        {"type": "response.function_call_arguments.delta", "output_index": 0, "item_id": "i", "delta": "{}"},
    ],
    [
        {"type": "message_start", "message": {"id": "m", "role": "assistant", "content": []}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "c", "name": "f"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "{}"}},
        {"type": "content_block_stop", "index": 0},
    ],
    [{"candidates": [{"content": {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {"a": 1}}}]}}]}],
    [{"event_type": "interaction.start", "interaction": {}}, {"event_type": "content.delta", "delta": {"text": "Hi"}}],
    [{"contentBlockStart": {"start": {"toolUse": {"toolUseId": "c", "name": "f"}}, "contentBlockIndex": 0}}],
    [{"contentBlockDelta": {"delta": {"text": "Hi"}, "contentBlockIndex": 0}}, {"messageStop": {"stopReason": "x"}}],
    [{"type": "content-delta", "index": 0, "delta": {"message": {"content": {"text": "Hi"}}}}],
    [{"model": "m", "created_at": "t", "message": {"role": "assistant", "content": "Hi"}, "done": False}],
    [{"event_kind": "part_start", "index": 0, "part": {"part_kind": "tool-call", "tool_name": "f", "args": "{"}}],
    [{"type": "AIMessageChunk", "content": "Hi", "tool_call_chunks": [{"name": "f", "args": "{}", "id": "c"}]}],
    [{"agent": {"messages": [{"type": "ai", "content": "Hi", "tool_calls": []}]}}],
    [{"event": "on_chat_model_stream", "run_id": "r", "name": "m", "data": {"chunk": {"content": "Hi"}}}],
    [
        {
            "id": "m",
            "role": "assistant",
            "parts": [*_HI, {"type": "tool-f", "toolCallId": "c", "state": "input-available"}],
        }
    ],
    [[{"role": "user", "content": _HI}, {"role": "assistant", "content": None, "tool_calls": [_CALL]}]],
    [[{"role": "assistant", "content": [{"toolUse": {"toolUseId": "c", "name": "f", "input": {}}}]}]],
    [{"object": "interaction", "steps": []}, {"message": {"role": "assistant", "content": _HI}, "finish_reason": "X"}],
    ["Hi", "there"],
]


# The corpora ------------------------------------------------------------------------------------------------------


def _there(name: str) -> Path | None:
    """Returns the folder of a corpus, or None."""
    try:
        return corpus(name)
    except pytest.skip.Exception:
        return None


def documents() -> Sequence[bytes]:
    """Returns real Markdown documents and those of the specifications."""
    incomplete, specs = _there("markdown_incomplete"), _there("markdown_specs")
    if incomplete is None or specs is None:
        return ()
    cases = json.loads((incomplete / "remend_cases.json").read_text("utf-8"))
    examples = json.loads((specs / "gfm_spec.json").read_text("utf-8"))
    return [str(case.get("input", case.get("markdown", ""))).encode() for case in (*cases, *examples)]


def yaml_documents() -> Sequence[bytes]:
    """Returns the documents of YAML's test suite, and hostile ones."""
    folder = _there("yaml_parsing")
    if folder is None:
        return ()
    files = ("yaml_test_suite.json", "yaml_hostile.json")
    found = [case.get("yaml") for name in files for case in json.loads((folder / name).read_text("utf-8"))]
    return [text.encode("utf-8", "surrogatepass")[:_LONGEST] for text in found if isinstance(text, str)]


def sse_streams() -> Sequence[bytes]:
    """Returns event streams of other projects' tests."""
    folder = _there("sse_parsing")
    cases = json.loads((folder / "sse_cases.json").read_text("utf-8")) if folder else []
    return [base64.b64decode(case["bytes_base64"])[:_LONGEST] for case in cases]


def hostile_html() -> Sequence[bytes]:
    """Returns published attacks against sanitisers."""
    folder = _there("xss")
    if folder is None:
        return ()
    cases = json.loads((folder / "dompurify_expect.json").read_text("utf-8"))
    more = json.loads((folder / "owasp_filter_evasion.json").read_text("utf-8"))
    return [str(case["payload"]).encode()[:_LONGEST] for case in (*cases, *more)]


def recorded_answers() -> Sequence[bytes]:
    """Returns the beginnings of recorded bodies."""
    if _there("streams_pydantic_ai") is None:
        return ()
    return [one.body[:_LONGEST] for one in pydantic_ai() if one.path.suffix == ".sse"]


def recorded_items() -> Sequence[bytes]:
    """Returns the first items of recorded streams."""
    if _there("streams_vercel_ai") is None:
        return ()
    return ["\n".join(map(json.dumps, one.items[:_FEW])).encode()[:_LONGEST] for one in vercel_ai()]
