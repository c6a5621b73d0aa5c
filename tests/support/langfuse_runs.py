"""Tests of spans with Langfuse's SDK. Runs in an environment that has it: see tests/chat/test_trace_viewers.py.

The SDK is real. Langfuse's server needs several databases, so a server on loopback records the requests in its place.
"""

from __future__ import annotations

import gzip
import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from langfuse import Langfuse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

sys.path.insert(0, str(Path(__file__).parent))

from traced_chat import run_traced_chat  # type: ignore[import-not-found]  # the tests are no package here


class Recorder(BaseHTTPRequestHandler):
    """Answers each request with success, and records its path and body."""

    received: list[tuple[str, bytes]] = []  # noqa: RUF012

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        is_compressed = self.headers.get("Content-Encoding") == "gzip"
        self.received.append((self.path, gzip.decompress(body) if is_compressed else body))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Prints nothing."""


@pytest.fixture(scope="module")
def spans() -> dict[str, list[dict[str, Any]]]:
    """The attributes of the spans that Langfuse's SDK sends, by the span's name."""
    os.environ["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"] = "span_only"
    server = ThreadingHTTPServer(("127.0.0.1", 0), Recorder)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        client = Langfuse(public_key="pk-test", secret_key="sk-test", base_url=f"http://127.0.0.1:{server.server_port}")
        run_traced_chat()
        client.flush()
    finally:
        server.shutdown()
        server.server_close()
    found: dict[str, list[dict[str, Any]]] = {}
    for path, body in Recorder.received:
        assert path == "/api/public/otel/v1/traces"
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            for scope in resource.scope_spans:
                for span in scope.spans:
                    given = {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in span.attributes}
                    found.setdefault(span.name, []).append({**given, "status": span.status.message})
    return found


def test_every_span_is_sent(spans: dict[str, list[dict[str, Any]]]) -> None:
    assert {name: len(each) for name, each in spans.items()} == {
        "invoke_agent trip": 2,
        "chat gpt-test": 3,
        "execute_tool weather": 1,
        "execute_tool fail": 1,
    }


def test_turns_are_the_roots_that_langfuse_shows(spans: dict[str, list[dict[str, Any]]]) -> None:
    roots = [name for name, each in spans.items() for span in each if span.get("langfuse.internal.is_app_root")]
    assert roots == ["invoke_agent trip"] * 2
    first, second = spans["invoke_agent trip"]
    assert first["gen_ai.conversation.id"] == second["gen_ai.conversation.id"]
    assert [json.loads(span["gen_ai.output.messages"])[0]["parts"] for span in (first, second)] == [
        [{"type": "text", "content": "It is clear."}],
        [{"type": "text", "content": "You are welcome."}],
    ]


def test_content_and_tokens_are_under_the_names_that_langfuse_reads(spans: dict[str, list[dict[str, Any]]]) -> None:
    """The names are those that its server reads (packages/shared/src/server/otel/OtelIngestionProcessor.ts)."""
    (weather,), (fail,) = spans["execute_tool weather"], spans["execute_tool fail"]
    assert json.loads(weather["gen_ai.tool.call.arguments"]) == {"city": "Lyon"}
    assert json.loads(weather["gen_ai.tool.call.result"]) == {"city": "Lyon", "sky": "clear"}
    assert fail["status"] == "LookupError: no 3"
    for request in spans["chat gpt-test"]:
        assert (request["gen_ai.usage.input_tokens"], request["gen_ai.usage.output_tokens"]) == (12, 5)
        assert request["gen_ai.response.model"] == "gpt-test-2026"
        assert json.loads(request["gen_ai.input.messages"])[0]["role"] == "system"
