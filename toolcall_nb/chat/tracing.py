"""Traces a turn as spans of OpenTelemetry where the user has set a tracer provider: `trace_turn` is the entry point.

OpenTelemetry is never imported for this: who has set a provider has imported it. `toolcall_nb.chat.turn_spans` makes
the spans; without a provider, `toolcall_nb.chat.turn_trace.UNTRACED` does nothing.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from toolcall_nb.chat.turn_trace import UNTRACED, TurnTrace

if TYPE_CHECKING:
    from toolcall_nb.chat.state import ChatState


def trace_turn(chat: ChatState) -> TurnTrace:
    """Returns the trace of a new turn; `UNTRACED` where no tracer provider is set."""
    api = sys.modules.get("opentelemetry.trace")
    if api is None:
        return UNTRACED
    provider = api.get_tracer_provider()
    if isinstance(provider, api.ProxyTracerProvider | api.NoOpTracerProvider):
        return UNTRACED
    from toolcall_nb.chat.turn_spans import TurnSpan

    return TurnSpan(chat, provider)
