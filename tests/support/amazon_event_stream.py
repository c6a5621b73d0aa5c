"""Decodes Amazon's binary event stream into the JSON that boto3 gives: ``{event type: payload}``.

Source: the specification of ``application/vnd.amazon.eventstream``: lengths of the frame and of its headers, a
checksum, headers, the payload, a checksum.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from typing import Any

__all__ = ["event_stream_items"]

_STRING = 7


def event_stream_items(body: bytes) -> Iterator[dict[str, Any]]:
    """Yields the events of a body."""
    place = 0
    while place < len(body):
        total, headers = struct.unpack(">II", body[place : place + 8])
        start = place + 12
        kinds = dict(_headers(body[start : start + headers]))
        payload = json.loads(body[start + headers : place + total - 4])
        yield {kinds.get(":event-type") or kinds[":exception-type"]: payload}
        place += total


def _headers(data: bytes) -> Iterator[tuple[str, str]]:
    while data:
        end = 1 + data[0]
        name = data[1:end].decode()
        assert data[end] == _STRING, "expected text headers only, which is what Bedrock sends"
        length = struct.unpack(">H", data[end + 1 : end + 3])[0]
        yield name, data[end + 3 : end + 3 + length].decode()
        data = data[end + 3 + length :]
