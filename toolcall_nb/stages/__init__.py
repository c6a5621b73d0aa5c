"""Stages: tool calls in the form of seed 002, a log of updates in which each block starts once and ends once.

    to_stages(events)      returns the log of a stream of events; `StageProjector` makes it live
    from_stages(log)       returns the events of a log; `StageReader` reads it live
    validate(log)          returns every rule of the seed that a log breaks, and where
    upgrade(block)         returns an old block or update with ``stage`` in place of ``isRunning``
    apply_update(…)        returns the tool blocks of a message after one more update

The updates for the events of a call:

| event | update |
| --- | --- |
| ``tool-input-start`` | ``start`` with empty parameters; whole ones if the input comes whole |
| ``tool-input-delta`` | ``streaming`` with the parameters so far, and what is new as ``parametersChunk`` |
| ``tool-input-available`` | ``running`` with the input as JSON and ``compactParams``; again if it was edited |
| a preliminary output | ``streaming`` with ``result`` and ``shortResult`` |
| ``data-tool-log`` | ``streaming`` with the last lines as ``shortResult`` |
| an approval asked for or given | nothing |
| ``tool-output-available`` | ``end`` with ``success``, ``result``, ``shortResult``, ``images`` |
| ``tool-output-error`` | ``end`` with ``error``, and ``result`` for the model |
| ``tool-input-error`` | the same; without a ``running`` before if the input never was available |
| ``tool-output-denied``, an interruption, no end at all | ``end`` with the words `DENIED` or `ABORTED` |
| a call that is taken back or gets another id | ``end`` with the words `TAKEN_BACK`; then the start of the other |

The cards of this package show the same: ``compactParams`` is the line of a closed card, ``error`` is always visible,
``parameters`` and ``result`` are sections.

Read back, the calls have the same id, name, final state, input, output and error. Stages cannot express:

| of the call | what comes back |
| --- | --- |
| a second call with an id that the log has | the id with a number, ``id-2`` |
| a state that is not final | interrupted; broken-off arguments in a whole message: an error that says so |
| an output that is text, but reads as JSON | that JSON value: ``"42"`` as ``42`` |
| a number that JSON has no word for | null |
| that arguments were never complete, if the call yet succeeded, failed or was denied | the value or text they are |
| an error in the very words of `ABORTED`, `DENIED`, `TAKEN_BACK` or `UNREADABLE` | what those words say |
| the display of an output | its images, of each media type the first; of a failure none |
| a call that had ended when its step was reset | that call |
| approvals, the input before an edit | of a denial the reason |
| what was printed, what the model was told, the traceback, title and metadata, the messages around | nothing |
"""

from __future__ import annotations

from toolcall_nb.stages.blocks import (
    Block,
    CommandOutputBlock,
    Image,
    NameAndArguments,
    Stage,
    ToolBlock,
    UpdateToolBlockParams,
    apply_update,
    block_from_dict,
    block_to_dict,
    upgrade,
)
from toolcall_nb.stages.checking import RULES, BrokenRule, validate
from toolcall_nb.stages.projecting import ABORTED, DENIED, TAKEN_BACK, TRUNCATED, UNREADABLE, StageProjector, to_stages
from toolcall_nb.stages.reading import StageReader, from_stages

__all__ = [
    "ABORTED",
    "DENIED",
    "RULES",
    "TAKEN_BACK",
    "TRUNCATED",
    "UNREADABLE",
    "Block",
    "BrokenRule",
    "CommandOutputBlock",
    "Image",
    "NameAndArguments",
    "Stage",
    "StageProjector",
    "StageReader",
    "ToolBlock",
    "UpdateToolBlockParams",
    "apply_update",
    "block_from_dict",
    "block_to_dict",
    "from_stages",
    "to_stages",
    "upgrade",
    "validate",
]
