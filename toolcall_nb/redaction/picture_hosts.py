"""The hosts whose pictures are shown in this process; none, until somebody allows one.

See `toolcall_nb.render.html_output.pictures` for why, and for what a host is.
"""

from __future__ import annotations

from collections.abc import Iterable

from toolcall_nb.render.html_output.pictures import NO_HOSTS, allowed_hosts

__all__ = ["allow_pictures", "picture_hosts"]

_allowed = {"hosts": NO_HOSTS}


def allow_pictures(hosts: Iterable[str]) -> None:
    """From now on, pictures of these hosts and no others are shown. Raises `UsageError`, and changes nothing then."""
    _allowed["hosts"] = allowed_hosts(hosts)


def picture_hosts() -> frozenset[str]:
    """What is allowed."""
    return _allowed["hosts"]
