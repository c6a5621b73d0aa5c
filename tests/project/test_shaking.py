"""`./dev shake` stops and continues the tests' processes."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator

import psutil
import pytest

from tests.project.shaking import paused, stoppable

_WAITS = "import sys; print('here', flush=True); sys.stdin.read()"


@pytest.fixture
def child() -> Iterator[psutil.Process]:
    """A waiting process with a command line like a kernel's."""
    command = [sys.executable, "-c", _WAITS, "ipykernel"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as started:
        assert started.stdout is not None
        started.stdout.readline()
        yield psutil.Process(started.pid)
        started.kill()


def becomes(process: psutil.Process, is_stopped: bool) -> bool:
    """Whether the process reaches this state; a signal takes effect with a small delay."""
    give_up = time.monotonic() + 10
    while time.monotonic() < give_up:
        if (process.status() == psutil.STATUS_STOPPED) is is_stopped:
            return True
        time.sleep(0.001)
    return False


def test_a_process_is_stopped_and_continued_and_may_end_meanwhile(child: psutil.Process) -> None:
    with paused(child):
        assert becomes(child, is_stopped=True)
    assert becomes(child, is_stopped=False)
    with pytest.raises(ZeroDivisionError), paused(child):
        raise ZeroDivisionError
    assert becomes(child, is_stopped=False)
    with paused(child):
        child.kill()
        child.wait()
    with paused(child):
        pass


def test_stoppable_processes_are_grouped_by_kind(child: psutil.Process) -> None:
    kinds = [kind for kind in stoppable(psutil.Process()) if child in kind]
    assert [all("ipykernel" in " ".join(each.cmdline()) for each in kind) for kind in kinds] == [True]
