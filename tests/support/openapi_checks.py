"""schemathesis' checks of the server against its own OpenAPI document; `tests/server/test_peers.py` runs this file.

It is no part of the suite's own collection, since the import of schemathesis takes seconds of each worker.
"""

from __future__ import annotations

from typing import Any

import schemathesis
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings
from schemathesis.specs.openapi.checks import positive_data_acceptance

from tests.support.servers import settings
from toolcall_nb.server.app import application
from toolcall_nb.server.conversations import ServedThreads


class LastingThreads(ServedThreads):
    """Conversations that stay open: schemathesis starts and ends the application for each of its requests."""

    def close(self) -> None:
        """Closes nothing."""


_THREADS = LastingThreads(settings(hosts=("testserver",), limits={"readers": 10_000}), ticking=False)
SCHEMA = schemathesis.openapi.from_asgi("/openapi.json", application(_THREADS.settings, _THREADS))
SCHEMA.config.checks.negative_data_rejection.expected_statuses.append("413")  # too large is not the same as wrong


@SCHEMA.parametrize()
@hypothesis_settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
def test_the_server_does_what_its_openapi_document_says(case: Any) -> None:
    # No JSON Schema can say that the last message is the user's, nor what each kind of part holds.
    is_free = case.path == "/api/chat"
    case.call_and_validate(excluded_checks=[positive_data_acceptance] if is_free else [])
