"""A watch uses OpenTelemetry's own instrumentation of the OpenAI client where that can be imported."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.environments import run_tests_in

PACKAGES = ("openai>=3", "httpx", "opentelemetry-instrumentation-openai-v2==2.4b0", "opentelemetry-util-genai==1.1b0")
"""The instrumentation imports a module that later versions of opentelemetry-util-genai lack, and httpx."""


@pytest.mark.thorough
def test_requests_show_by_the_official_instrumentation(tmp_path: Path) -> None:
    assert "3 passed" in run_tests_in(tmp_path, "openai_instrumentation_runs.py", *PACKAGES)
