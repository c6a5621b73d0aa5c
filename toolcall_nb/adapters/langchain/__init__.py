"""LangChain and LangGraph."""

from __future__ import annotations

from toolcall_nb.adapters.langchain.stream import FORMAT, LangChainAdapter

__all__ = ["FORMAT", "LangChainAdapter"]
