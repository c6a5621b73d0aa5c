"""The law of the live view, for the tests and the fuzzer: it shows what the whole transcript gives."""

from __future__ import annotations

import re
from collections.abc import Mapping

from toolcall_nb.render import LiveHtml, to_html

__all__ = ["assert_whole", "settled"]

_CARD = re.compile(r'(<div class="tc-call tc-)(?:input-streaming|queued|running|approval-responded|called)(">)')
_WORD = re.compile(r'(<span class="tc-state">)(?:Pending|Queued|Running|Responded|Called)(</span>)')


def settled(html: str) -> str:
    """The HTML without what only a live view knows: what is going on with calls that have not ended."""
    return _WORD.sub(r"\1…\2", _CARD.sub(r"\1…\2", html))


def assert_whole(live: LiveHtml, opened: Mapping[str, bool] | None = None) -> None:
    """The live view shows the whole transcript so far."""
    assert settled(live.html) == settled(to_html(live.transcript, opened=opened))
