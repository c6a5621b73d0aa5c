"""Loads the recorded streams of the corpora: source, request and complete body.

A recording of pydantic-ai is the body as it was on the wire. A recording of the AI SDK is a list of events, which
`body` encodes in the provider's format.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tests.support.corpora import corpus

__all__ = ["Recording", "items_of", "pydantic_ai", "vercel_ai"]


@dataclass(frozen=True)
class Recording:
    """One recorded stream. ``wire`` is its format: openai_chat, openai_responses, anthropic, google, …"""

    name: str
    wire: str
    path: Path
    uri: str = ""
    model: str = ""
    features: tuple[str, ...] = ()

    @property
    def body(self) -> bytes:
        """The body as it was on the wire."""
        raw = self.path.read_bytes()
        return _as_sse(self.wire, self.items) if self.path.suffix == ".txt" else raw

    @property
    def items(self) -> list[dict[str, Any]]:
        """The JSON of each event. The few lines that are not JSON are left out."""
        raw = self.path.read_bytes()
        return _lines(raw) if self.path.suffix == ".txt" else items_of(raw)

    @property
    def request(self) -> dict[str, Any] | None:
        """The request, or None if it was not recorded."""
        path = self.path.with_suffix(".request.json")
        return json.loads(path.read_text("utf-8")) if path.exists() else None

    def __str__(self) -> str:
        return self.name


def pydantic_ai(*wires: str) -> list[Recording]:
    """Returns the recordings of `streams_pydantic_ai` for these wires, or for all wires but MCP."""
    return _chosen(_manifest("streams_pydantic_ai"), wires)


def vercel_ai(*wires: str) -> list[Recording]:
    """Returns the recordings of `streams_vercel_ai` for these wires, or for all."""
    return _chosen(_manifest("streams_vercel_ai"), wires)


def items_of(body: bytes) -> list[dict[str, Any]]:
    """Returns the JSON objects of an event stream, read line by line by the WHATWG rules, without ``[DONE]``."""
    items = []
    for block in re.split(r"(?:\r\n|\n|\r){2,}", body.decode("utf-8")):
        lines = [line[5:].removeprefix(" ") for line in re.split(r"\r\n|\n|\r", block) if line.startswith("data:")]
        data = "\n".join(lines)
        if data.startswith("{"):
            items.append(json.loads(data))
    return items


@cache
def _manifest(name: str) -> tuple[Recording, ...]:
    folder = corpus(name)
    found = []
    for entry in json.loads((folder / "MANIFEST.json").read_text("utf-8")):
        path = folder / entry["file"]
        is_stream = path.name.endswith((".sse", ".eventstream", ".chunks.txt"))
        if is_stream and path.exists():
            found.append(_recording(path, entry))
    return tuple(found)


def _recording(path: Path, entry: dict[str, Any]) -> Recording:
    wire = entry.get("provider") or "?"
    if path.name.startswith("google__interactions__"):
        wire = "google_interactions"
    name = path.name.removesuffix(".chunks.txt").removesuffix(".sse").removesuffix(".eventstream")
    uri, model = entry.get("uri") or "", entry.get("model") or ""
    return Recording(name, wire, path, uri, model, tuple(entry.get("features") or ()))


def _chosen(known: tuple[Recording, ...], wires: tuple[str, ...]) -> list[Recording]:
    found = [one for one in known if (one.wire in wires if wires else one.wire != "jsonrpc_mcp")]
    assert found, f"The corpus has no recording of {wires}"
    return found


def _lines(raw: bytes) -> list[dict[str, Any]]:
    items = []
    for line in raw.decode("utf-8").splitlines():
        try:
            item = json.loads(line)
        except ValueError:
            continue
        if isinstance(item, dict):
            items.append(item)
    return items


def _as_sse(wire: str, items: list[dict[str, Any]]) -> bytes:
    events = []
    for item in items:
        named = f"event: {item['type']}\n" if wire in ("anthropic", "openai_responses") and "type" in item else ""
        events.append(f"{named}data: {json.dumps(item, ensure_ascii=False)}\n\n")
    if wire == "openai_chat":
        events.append("data: [DONE]\n\n")
    return "".join(events).encode()
