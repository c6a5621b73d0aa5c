"""Watches code that calls models and tools, whoever wrote it: `toolcall_nb.watching.session.WatchSession`.

Spans of OpenTelemetry tell what runs. span_sources.py collects them: from the user's tracer provider, from
instrumentations that it activates for the time being, and from functions decorated with ``@tool`` (plain_calls.py).
span_store.py keeps them and reads them as a transcript, and session.py turns each new reading into events.
"""

from __future__ import annotations

__all__: list[str] = []
