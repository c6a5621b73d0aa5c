"""LangChain and LangGraph: messages, streams of models and graphs, and states."""

from __future__ import annotations

from toolcall_nb.adapters.langchain.conversation import LANGCHAIN, LangChainAdapter
from toolcall_nb.adapters.langchain.langgraph import LANGGRAPH, LangGraphAdapter

__all__ = ["LANGCHAIN", "LANGGRAPH", "LangChainAdapter", "LangGraphAdapter"]
