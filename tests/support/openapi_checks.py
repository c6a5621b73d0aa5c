"""Checks the server against its own OpenAPI document with schemathesis; `tests/server/test_peers.py` runs this file.

pytest does not collect it with the other tests, since importing schemathesis takes seconds in each worker.
"""

from __future__ import annotations

from typing import Any

import schemathesis
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings
from schemathesis.specs.openapi.checks import positive_data_acceptance

from tests.support.profile import IS_THOROUGH
from tests.support.servers import settings
from toolcall_nb.server.app import application
from toolcall_nb.server.conversations import ServedThreads


class LastingThreads(ServedThreads):
    """Threads that stay open although schemathesis starts and stops the application for each request."""

    def close(self) -> None:
        """Closes nothing."""


_THREADS = LastingThreads(settings(hosts=("testserver",), limits={"readers": 10_000}), ticking=False)
SCHEMA = schemathesis.openapi.from_asgi("/openapi.json", application(_THREADS.settings, _THREADS))
SCHEMA.config.checks.negative_data_rejection.expected_statuses.append("413")  # a valid body may be too large


@SCHEMA.parametrize()
@hypothesis_settings(max_examples=10 if IS_THOROUGH else 3, deadline=None, suppress_health_check=list(HealthCheck))
def test_the_server_does_what_its_openapi_document_says(case: Any) -> None:
    # JSON Schema cannot express that the last message is the user's, nor the contents of each kind of part.
    is_free = case.path == "/api/chat"
    case.call_and_validate(excluded_checks=[positive_data_acceptance] if is_free else [])
