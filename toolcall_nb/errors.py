"""The error tree. Text from a model never raises; these are for callers and for peers.

    ToolcallError                what this package raises on purpose
    ├── UsageError               a caller's misuse: a wrong option, a name that is taken (also a ValueError)
    ├── WireError                a peer sent a frame that is not what its protocol says (also a ValueError)
    ├── ModelError               a model could not answer: no key, no connection, a refusal
    └── MissingPackageError      an optional package is not installed (also an ImportError)

A message says what happened, quotes the value, and says what to do.
"""

from __future__ import annotations

__all__ = ["MissingPackageError", "ModelError", "ToolcallError", "UsageError", "WireError"]


class ToolcallError(Exception):
    """Base of every error that this package raises on purpose."""


class UsageError(ToolcallError, ValueError):
    """The caller asked for something that cannot be done as asked."""


class WireError(ToolcallError, ValueError):
    """A peer sent a frame that its own protocol does not allow."""


class ModelError(ToolcallError):
    """A model could not answer. The message is for a person: what happened and what to do.

    ``details`` is what the provider said of it, as text. ``may_retry``: the same request may be answered a little
    later; ``retry_after`` is when, in seconds, where the provider says so. ``brief`` is what happened in two words, for
    a line of status.
    """

    def __init__(
        self,
        message: str,
        *,
        details: str | None = None,
        may_retry: bool = False,
        retry_after: float | None = None,
        brief: str = "",
    ) -> None:
        super().__init__(message)
        self.details = details
        self.may_retry = may_retry
        self.retry_after = retry_after
        self.brief = brief


class MissingPackageError(ToolcallError, ImportError):
    """An optional package is needed; the message holds its install line."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        install = f"pip install 'toolcall-nb[{extra}]'"
        super().__init__(f"{purpose} needs the package {package!r}. Install it with: {install}")
