"""What is taken for a model and is none, and what to do with it; by the names of types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolcall_nb.adapters.plain import class_names
from toolcall_nb.errors import UsageError

__all__ = ["refuse"]

_A_CLIENT = (
    "A client is not a model. Name one ({family}:MODEL), or write a function of the messages that asks the client."
)
_REMEDIES: Mapping[tuple[str, str], str] = {
    ("langgraph.pregel.main", "Pregel"): (
        "A graph of LangGraph runs its tools itself, so it is not a model. Give the chat model that it asks, or "
        'show(graph.astream_events({"messages": …}, version="v2")).'
    ),
    ("pydantic_ai.agent.abstract", "AbstractAgent"): (
        "An agent of pydantic-ai runs its tools itself, so it is not a model. Give its model (agent.model), or "
        "show(agent.run_stream_events(…))."
    ),
    **{
        (f"{package}._base_client", "BaseClient"): _A_CLIENT.format(family=package)
        for package in ("openai", "anthropic", "groq")
    },
    ("google.genai.client", "Client"): _A_CLIENT.format(family="google"),
    ("mistralai.client.sdk", "Mistral"): _A_CLIENT.format(family="mistral"),
}


def refuse(thing: Any) -> None:
    """Raise `UsageError` for what is known to be none; anything else may be one."""
    for name in class_names(type(thing)):
        if name in _REMEDIES:
            raise UsageError(_REMEDIES[name])
