"""Amazon Bedrock's Converse API: streams and replies, and lists of messages."""

from __future__ import annotations

from toolcall_nb.adapters.bedrock.converse import CONVERSE, CONVERSE_MESSAGES, BedrockAdapter

__all__ = ["CONVERSE", "CONVERSE_MESSAGES", "BedrockAdapter"]
