"""The names of the dialects, apart from their code: the magics offer them before anything else is imported."""

from __future__ import annotations

DIALECTS = ("callout", "signature", "json")
"""The names of the dialects. Beside them ``native`` stands for a provider's own tool calling, without any text."""
