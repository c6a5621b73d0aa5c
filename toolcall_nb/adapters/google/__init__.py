"""Google's APIs: generateContent (streams, replies and lists of contents) and interactions."""

from __future__ import annotations

from toolcall_nb.adapters.google.generate_content import GENERATE_CONTENT, GOOGLE_CONTENTS, GoogleAdapter
from toolcall_nb.adapters.google.interactions import INTERACTIONS, InteractionsAdapter

__all__ = ["GENERATE_CONTENT", "GOOGLE_CONTENTS", "INTERACTIONS", "GoogleAdapter", "InteractionsAdapter"]
