"""The display of a tool call: the MIME bundle of its result, and in it the bundles that the tool displayed.

The bundle's MIME types are the result's own view. Under `DISPLAYED` is a list with one MIME bundle for each call of
``display()`` and ``plt.show()`` while the tool ran: `with_displayed_bundles` adds it, `displayed_bundles` reads it.

`sent_pictures` returns the pictures that the model was sent. When a call ends, its ``tool_metadata`` notes under
`SENT_AS` whether the model that called is sent pictures or text.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence

from toolcall_nb.core.events import Json, Object
from toolcall_nb.core.transcript import State, ToolCall

DISPLAYED = "application/vnd.toolcall_nb.displayed+json"

MAX_DISPLAYS = 20
"""The number of displays of one call that are kept."""

MAX_DISPLAY = 10_000_000
"""Characters of the displays of one call that are kept, pictures as base64 text."""


def displayed_bundles(display: Mapping[str, Json] | None) -> list[Object]:
    """Returns the bundles that the tool displayed while it ran, in order."""
    bundles = (display or {}).get(DISPLAYED)
    return [bundle for bundle in bundles if isinstance(bundle, dict)] if isinstance(bundles, list) else []


def with_displayed_bundles(view: Object | None, bundles: Sequence[Object]) -> Object | None:
    """Returns the display of a call whose result has this ``view``; None if there is nothing to show.

    A picture that is already there is not repeated. Bundles beyond the limits are left out, and their number is noted.
    """
    if not bundles:
        return view or None
    kept: list[Object] = []
    left_out, room = 0, MAX_DISPLAY - _size(view or {})
    for bundle in bundles:
        pictures = [(kind, content) for kind, content in bundle.items() if kind.startswith("image/")]
        if any(other.get(kind) == content for other in (view or {}, *kept) for kind, content in pictures):
            continue
        if len(kept) < MAX_DISPLAYS and _size(bundle) <= room:
            room -= _size(bundle)
            kept.append(bundle)
        else:
            left_out += 1
    if left_out:
        kept.append({"text/markdown": f"*… {left_out:,} more displays are left out*"})
    return ({**(view or {}), DISPLAYED: kept} if kept else view) or None


def _size(bundle: Mapping[str, Json]) -> int:
    return sum(len(content) for content in bundle.values() if isinstance(content, str))


SENT_AS = "sentAs"
_PICTURE, _TEXT = "picture", "text"

_KINDS = ("image/png", "image/jpeg", "image/gif", "image/webp")
"""What the providers take."""

_MAX_SENT = 4
_MAX_CHARACTERS = 5_000_000
"""Pictures of one result that are sent, and the base64 characters of each: Anthropic takes 5 MB."""


def result_pictures(display: Mapping[str, Json] | None) -> list[tuple[str, str]]:
    """Returns the media type and base64 data of the pictures that a result is or that its tool displayed."""
    pictures: list[tuple[str, str]] = []
    for bundle in (display or {}, *displayed_bundles(display)):
        kind = next((kind for kind in _KINDS if isinstance(bundle.get(kind), str)), None)
        data = str(bundle[kind]) if kind is not None else ""
        if kind is not None and data and len(data) <= _MAX_CHARACTERS and _is_base64(data):
            pictures.append((kind, data))
    return pictures


def with_sent_as(metadata: Object | None, display: Mapping[str, Json] | None, *, sees: bool) -> Object | None:
    """Returns the metadata of a call that ends, with what a model that ``sees`` is sent; the same without a picture."""
    if not result_pictures(display):
        return metadata
    return {**(metadata or {}), SENT_AS: _PICTURE if sees else _TEXT}


def sent_pictures(call: ToolCall) -> list[tuple[str, str]]:
    """Returns the pictures that the model was sent; none if it was sent text."""
    if call.state is not State.OUTPUT_AVAILABLE or (call.tool_metadata or {}).get(SENT_AS) != _PICTURE:
        return []
    return result_pictures(call.display)[:_MAX_SENT]


def sent_note(call: ToolCall) -> str:
    """Returns what a card says of it: ``sent as a picture``, ``sent as text``; empty for a result without pictures."""
    kind = (call.tool_metadata or {}).get(SENT_AS)
    if kind not in (_PICTURE, _TEXT) or call.state is not State.OUTPUT_AVAILABLE:
        return ""
    sent, total = len(sent_pictures(call)), len(result_pictures(call.display))
    if kind == _TEXT or not sent:
        return "sent as text" if total else ""
    count = f"{sent} pictures" if sent > 1 else "a picture"
    return f"sent as {count}" if sent == total else f"sent as {count} of {total}"


def _is_base64(data: str) -> bool:
    try:
        base64.b64decode(data)
    except (binascii.Error, ValueError):
        return False
    return True
