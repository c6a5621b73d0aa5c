"""AG-UI (ag-ui-protocol/ag-ui, protocol 1.0), both ways: `AgUiEncoder` writes its events, `AgUiDecoder` reads them.

An assistant's message is one run; several in one stream are several runs. What AG-UI has an event for is that event:

| here | AG-UI |
| --- | --- |
| a message begins, ends | ``RUN_STARTED``, ``RUN_FINISHED`` |
| a message that was stopped | ``RUN_FINISHED`` with the outcome ``cancelled`` |
| an error at the end of a message | ``RUN_ERROR`` |
| a question that was not answered | ``RUN_FINISHED`` with the outcome ``interrupt``, one interrupt for each |
| calls that wait for a result | ``RUN_FINISHED`` with ``pendingToolCallIds`` |
| a step | ``STEP_STARTED``, ``STEP_FINISHED`` |
| a block of text, of reasoning | ``TEXT_MESSAGE_*``, ``REASONING_*``; each block is a message of its own |
| a call and its input | ``TOOL_CALL_START``, ``TOOL_CALL_ARGS``, ``TOOL_CALL_END`` |
| an output, an error, a denial, an interruption | ``TOOL_CALL_RESULT`` with a text that says so |
| the data part ``state`` | ``STATE_SNAPSHOT`` |
| other data | ``CUSTOM`` |

All else is a ``CUSTOM`` event named `CHUNK` that holds the chunk of `toolcall_nb.core.events`, which other readers
skip; and
where an event has more to say than AG-UI has fields for, it is in the event's ``metadata`` under `OURS`. So this
package's own reader loses nothing, and `NOT_SAID` is what others do not see.

Reading: an id that is not open, a missing field or an unknown member is a diagnostic; an event of a type that is not
known is kept as `toolcall_nb.core.events.Other`. The messages that ``RUN_STARTED`` repeats from the request are not
told
again; of a ``MESSAGES_SNAPSHOT`` those are that were not streamed before. Changes of the state are transient data
``state-delta``, and the state that they lead to is told at the end of the run.
"""

from __future__ import annotations

from toolcall_nb.wire.ag_ui.reading import AgUiDecoder
from toolcall_nb.wire.ag_ui.terms import CHUNK, NAME, OURS, PROTOCOL_VERSION
from toolcall_nb.wire.ag_ui.writing import AgUiEncoder

__all__ = ["CHUNK", "NAME", "NOT_SAID", "OURS", "PROTOCOL_VERSION", "AgUiDecoder", "AgUiEncoder"]

NOT_SAID = (
    "Other readers see a failed, denied or interrupted call as a result whose text says so, and what turned out to be "
    "no call as a call; not what a tool prints, preliminary outputs, an edited input, titles, sources, files, a step "
    "that is tried again, diagnostics, nor input that is no JSON before it is complete. This package's reader loses "
    "nothing."
)
