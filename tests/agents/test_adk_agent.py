"""Runs the tests of Google's ADK (tests/support/adk_runs.py), which cannot be installed beside the other frameworks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.thorough
def test_an_agent_of_adk_answers_a_chat_in_an_environment_of_its_own(tmp_path: Path) -> None:
    uv, python = (sys.executable, "-m", "uv"), str(tmp_path / "environment" / "bin" / "python")
    subprocess.run([*uv, "venv", "--quiet", "--python", sys.executable, "environment"], cwd=tmp_path, check=True)
    wanted = [str(ROOT), "google-adk>=2.13", "pytest"]
    subprocess.run([*uv, "pip", "install", "--quiet", "--python", python, *wanted], cwd=tmp_path, check=True)
    tests = str(ROOT / "tests" / "support" / "adk_runs.py")
    options = ("-q", "--noconftest", "-c", os.devnull, "--rootdir", str(tmp_path), "-p", "no:cacheprovider")
    ran = subprocess.run([python, "-m", "pytest", *options, tests], cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout
    assert "6 passed" in ran.stdout
