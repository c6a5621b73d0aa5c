"""What a server is made with: who answers, what may be called, who may ask, and how much of anything."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any
from warnings import warn

from msgspec import Struct, field
from msgspec.structs import force_setattr

from toolcall_nb.approvals import ApprovalMode
from toolcall_nb.errors import UsageError
from toolcall_nb.tools import Registry, ToolSource, as_tools

__all__ = ["Limits", "Settings", "is_loopback"]


class Limits(Struct, frozen=True):
    """How much is taken of anything; what is beyond is refused with a clear 4xx or 503, or ended."""

    body: int = 8_000_000
    """Bytes of a request's body (413)."""
    body_seconds: float = 30.0
    """Until a body has come whole (408), and a request's head at the latest in twice that."""
    message: int = 100_000
    """Characters of a prompt, and of each text of a history (413)."""
    messages: int = 1_000
    """Messages of a history (413)."""
    images: int = 8
    """Images beside a prompt (413)."""
    runs: int = 32
    """Turns that run at the same time (503, with Retry-After)."""
    readers: int = 128
    """Streams that are read at the same time (503, with Retry-After)."""
    threads: int = 1_000
    """Conversations that are kept in memory; the ones that were used longest ago go first. Stored ones come back."""
    turn_seconds: float = 600.0
    """A turn that takes longer is stopped."""
    turn_bytes: int = 32_000_000
    """A turn that gives more is stopped."""
    ahead_bytes: int = 1_000_000
    """How far a turn may be ahead of its fastest reader; then the model waits."""
    stalled_seconds: float = 60.0
    """A reader that takes nothing for so long is let go."""
    closing_seconds: float = 5.0
    """A connection whose client does not take the rest is torn down so long after its end, or twice that."""
    question_seconds: float = 600.0
    """A question that nobody answers in this time is answered with no."""
    grace_seconds: float = 20.0
    """A turn that nobody reads any more goes on for so long; then it is stopped."""
    linger_seconds: float = 60.0
    """A turn that has ended can be read for so long."""
    linger_bytes: int = 64_000_000
    """How much is kept of turns that have ended; beyond that the oldest go before their time."""
    beat_seconds: float = 15.0
    """A stream in which nothing happens says so this often, so that a reader that is gone is noticed."""

    @property
    def connections(self) -> int:
        """Connections at the same time: beyond it, those without a whole request are closed; at twice it, 503."""
        return self.readers + self.runs + 100


class Settings(Struct, frozen=True, kw_only=True):
    """A server's. ``models`` are what a request may ask for, by name; the first answers where none is asked for.

    ``tools`` are what a request may choose among: whatever a `Chat` takes, held as a registry. ``store`` is the folder
    of the threads; None keeps them in memory. ``token`` is demanded of every request for data; an empty one, or one
    that no header can carry, raises `UsageError`. ``origins`` are the other origins whose pages may ask;
    ``hosts`` the names under which the server may be called, beside those of loopback; empty: any, where a token is
    demanded. ``speed`` is the mock's; None never waits. ``masking``: secrets are masked in stored threads, and
    in those that are asked for as documents.
    """

    models: Mapping[str, Any] = field(default_factory=lambda: {"mock": "mock"})
    tools: ToolSource = field(default_factory=Registry)
    system: str | None = None
    dialect: str = "native"
    approval_mode: ApprovalMode = "auto"
    approve: ApprovalMode | None = None
    """The former name of ``approval_mode``."""
    max_steps: int = 10
    speed: float | None = 1.0
    store: str | None = None
    token: str | None = None
    origins: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    masking: bool = True
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        if self.approve is not None:
            warn("Settings(approve=…) is now Settings(approval_mode=…)", DeprecationWarning, stacklevel=2)
            force_setattr(self, "approval_mode", self.approve)
        if self.token is not None and not _is_token(self.token):
            raise UsageError(
                "The token is empty, or has a blank or a character that is not ASCII in it. Give one of visible ASCII "
                "characters, or none at all where only this machine reaches the server."
            )
        if not isinstance(self.tools, Registry):
            force_setattr(self, "tools", Registry(as_tools(self.tools)))

    def __repr__(self) -> str:  # the token is never written anywhere
        return f"<Settings: {', '.join(self.models)}; tools {', '.join(self.tools) or 'none'}>"

    @property
    def default_model(self) -> str:
        """Who answers where no model is asked for."""
        return next(iter(self.models))


def _is_token(token: str) -> bool:
    """Whether a header can carry the token: visible ASCII characters, at least one (RFC 9110, section 5.5)."""
    return bool(token) and all("!" <= character <= "~" for character in token)


def is_loopback(host: str) -> bool:
    """Whether nobody but this machine reaches a server on ``host``."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"
