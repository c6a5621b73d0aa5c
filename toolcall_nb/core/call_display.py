"""A tool call's display: the view of its result as a MIME bundle, and in that what the tool displayed while it ran.

The kinds of the bundle are the result's own view. Under `DISPLAYED` stands the list of what ``display()`` and
``plt.show()`` showed, one MIME bundle for each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from toolcall_nb.core.events import Json, Object

__all__ = ["DISPLAYED", "MAX_DISPLAY", "MAX_DISPLAYS", "displayed_bundles", "with_displayed_bundles"]

DISPLAYED = "application/vnd.toolcall_nb.displayed+json"

MAX_DISPLAYS = 20
"""How many displays of one call are kept."""

MAX_DISPLAY = 10_000_000
"""Characters of the displays of one call that are kept, pictures as base64 text."""


def displayed_bundles(display: Mapping[str, Json] | None) -> list[Object]:
    """What the tool displayed while it ran, in order."""
    found = (display or {}).get(DISPLAYED)
    return [bundle for bundle in found if isinstance(bundle, dict)] if isinstance(found, list) else []


def with_displayed_bundles(own: Object | None, bundles: Sequence[Object]) -> Object | None:
    """The display of a call whose result has the view ``own``; None where there is nothing to show.

    A picture that is the result's own, or stands there already, is not repeated. Of what is too much the number is
    kept.
    """
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
