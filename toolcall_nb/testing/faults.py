"""All faults for tests: those of a model's stream, those of its connection, and those at a chosen request or call.

model = with_faults(MockModel(), faults.cut_bytes(3), faults.on(request=2, status=429))
"""

from __future__ import annotations

from toolcall_nb.models.faults import (
    Fault,
    abort,
    cut,
    disconnect,
    duplicate_id,
    faulty,
    malformed_call,
    missing_id,
    random_cuts,
    stall,
    truncate,
    with_faults,
)
from toolcall_nb.testing.planned_faults import (
    FaultNeverHappened,
    HttpStatusError,
    RequestFault,
    ToolFault,
    injected,
    on,
    tools_with_faults,
)
from toolcall_nb.testing.wire_faults import cut_bytes, disconnect_at, slow

__all__ = [
    "Fault",
    "FaultNeverHappened",
    "HttpStatusError",
    "RequestFault",
    "ToolFault",
    "abort",
    "cut",
    "cut_bytes",
    "disconnect",
    "disconnect_at",
    "duplicate_id",
    "faulty",
    "injected",
    "malformed_call",
    "missing_id",
    "on",
    "random_cuts",
    "slow",
    "stall",
    "tools_with_faults",
    "truncate",
    "with_faults",
]
