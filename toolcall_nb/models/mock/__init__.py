"""The mock model: no key, no network, and yet it really calls the tools."""

from __future__ import annotations

from toolcall_nb.models.mock.model import MockModel

__all__ = ["MockModel"]
