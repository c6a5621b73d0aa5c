"""The display of a tool call: the MIME bundle of its result, and in it the bundles that the tool displayed.

The bundle's MIME types are the result's own view. Under `DISPLAYED` is a list with one MIME bundle for each call of
``display()`` and ``plt.show()`` while the tool ran: `with_displayed_bundles` adds it, `displayed_bundles` reads it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from toolcall_nb.core.events import Json, Object

DISPLAYED = "application/vnd.toolcall_nb.displayed+json"

MAX_DISPLAYS = 20
"""How many displays of one call are kept."""

MAX_DISPLAY = 10_000_000
"""Characters of the displays of one call that are kept, pictures as base64 text."""


def displayed_bundles(display: Mapping[str, Json] | None) -> list[Object]:
    """Returns the bundles that the tool displayed while it ran, in order."""
    found = (display or {}).get(DISPLAYED)
    return [bundle for bundle in found if isinstance(bundle, dict)] if isinstance(found, list) else []


def with_displayed_bundles(own: Object | None, bundles: Sequence[Object]) -> Object | None:
    """Returns the display of a call whose result has the view ``own``; None if there is nothing to show.

    A picture that is already there is not repeated. Bundles beyond the limits are left out, and their number is noted.
    """
    if not bundles:
        return own or None
    kept: list[Object] = []
    left_out, room = 0, MAX_DISPLAY - _size(own or {})
    for bundle in bundles:
        if any(_is_same_picture(bundle, other) for other in (own or {}, *kept)):
            continue
        if len(kept) < MAX_DISPLAYS and _size(bundle) <= room:
            room -= _size(bundle)
            kept.append(bundle)
        else:
            left_out += 1
    if left_out:
        kept.append({"text/markdown": f"*… {left_out:,} more displays are left out*"})
    return ({**(own or {}), DISPLAYED: kept} if kept else own) or None


def _size(bundle: Mapping[str, Json]) -> int:
    return sum(len(content) for content in bundle.values() if isinstance(content, str))


def _is_same_picture(one: Mapping[str, Json], other: Mapping[str, Json]) -> bool:
    return any(kind.startswith("image/") and other.get(kind) == content for kind, content in one.items())
