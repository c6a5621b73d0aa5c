"""Amazon Bedrock's Converse API."""

from __future__ import annotations

from toolcall_nb.adapters.bedrock.converse import FORMAT, BedrockAdapter, file_of

__all__ = ["FORMAT", "BedrockAdapter", "file_of"]
