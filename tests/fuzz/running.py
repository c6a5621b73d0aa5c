"""Runs libFuzzer (atheris) in child processes, since it ends the process in which it runs.

The package is instrumented once, while it is imported; each run is a fork of that process. A run returns its finding
through a file and its number of executions through shared memory.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import mmap
import os
import struct
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

if TYPE_CHECKING:
    from tests.fuzz.targets import Target

__all__ = ["Found", "Outcome", "fuzz", "instrumented_targets", "is_there", "signature", "smaller"]

_COUNT = struct.Struct("<Q")
_HANGS = 60
"""Timeout for one input, in seconds. Inputs of these sizes take less than one; this detects endless loops."""
_MOST_MEMORY = 2048
_BROKEN = 77
_SHRINKING = 2000
"""The number of executions for minimising a finding."""

Signature = tuple[str, str, int]


class Found(Struct, frozen=True):
    """A minimised input that breaks a law, and the exception."""

    data: bytes
    trouble: str
    signature: Signature


class Outcome(Struct, frozen=True):
    """The result of running one target: executions, CPU seconds, finding, and the problem if the run failed."""

    target: str
    executions: int
    cpu_seconds: float
    found: Found | None = None
    trouble: str = ""


def is_there() -> bool:
    """Whether atheris is installed; it has wheels for Linux on x86-64 only."""
    return importlib.util.find_spec("atheris") is not None


def instrumented_targets() -> dict[str, Target]:
    """Returns the targets, with the package instrumented, including its lazy imports."""
    atheris = importlib.import_module("atheris")
    with _quiet(), atheris.instrument_imports(include=["toolcall_nb"]):
        targets = dict(importlib.import_module("tests.fuzz.targets").TARGETS)
        for target in targets.values():
            for data in target.seeds()[:2]:
                with contextlib.suppress(Exception):
                    target.check(data)
    return targets


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Silences standard error inside the block, also for C code."""
    sys.stderr.flush()
    kept = os.dup(2)
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(kept, 2)
        os.close(kept)


def fuzz(
    name: str,
    target: Target,
    limit: str,
    *,
    seed: int,
    kept: Path,
    seeds: Iterable[bytes],
    known: frozenset[Signature] = frozenset(),
) -> Outcome:
    """Runs one target in a fork, up to ``limit`` (an option of libFuzzer) or until a finding that is not ``known``.

    ``kept`` is the folder of inputs that reach new code; the seeds are added to it.
    """
    for number, data in enumerate(seeds):
        (kept / f"seed-{number:04}").write_bytes(data[: target.longest])
    with tempfile.TemporaryDirectory() as folder, mmap.mmap(-1, _COUNT.size) as shared:
        words = Path(folder) / "words"
        words.write_text("".join(map(_word, dict.fromkeys(target.words))))
        options = (
            *(limit, f"-seed={seed}", f"-max_len={target.longest}", f"-timeout={_HANGS}", "-len_control=0"),
            *(f"-rss_limit_mb={_MOST_MEMORY}", f"-dict={words}", f"-artifact_prefix={folder}/", "-detect_leaks=0"),
        )
        child = os.fork()
        if child == 0:
            _run(target.check, [name, *options, str(kept)], Path(folder), shared, known)
        _, status, used = os.wait4(child, 0)
        executions = _COUNT.unpack(shared[:])[0]
        found, trouble = _result_of(target.check, Path(folder), os.waitstatus_to_exitcode(status))
    return Outcome(name, executions, used.ru_utime + used.ru_stime, found, trouble)


def _word(word: str) -> str:
    return '"' + "".join(f"\\x{byte:02x}" for byte in word.encode("utf-8")) + '"\n'


def _run(
    check: Callable[[bytes], None], options: list[str], folder: Path, shared: mmap.mmap, known: frozenset[Signature]
) -> None:
    """Runs in the child process and never returns."""
    with open(folder / "said", "wb") as said:
        os.dup2(said.fileno(), 1)
        os.dup2(said.fileno(), 2)
    count = 0

    def once(data: bytes) -> None:
        nonlocal count
        count += 1
        _COUNT.pack_into(shared, 0, count)
        try:
            check(data)
        except BaseException as error:
            if signature(error) in known:
                return
            (folder / "found").write_bytes(data)
            os._exit(_BROKEN)

    atheris: Any = importlib.import_module("atheris")
    atheris.Setup(options, once)
    atheris.Fuzz()
    os._exit(0)


def _result_of(check: Callable[[bytes], None], folder: Path, code: int) -> tuple[Found | None, str]:
    """Returns the child's finding, and the problem if it failed otherwise."""
    if code == _BROKEN and (folder / "found").exists():
        return smaller(check, (folder / "found").read_bytes()), ""
    artifacts = [path for path in folder.iterdir() if path.name.partition("-")[0] in ("timeout", "oom", "crash")]
    for path in artifacts:
        what = f"{path.name.partition('-')[0]}: see the end of libFuzzer's output\n{_end_of_output(folder)}"
        return Found(path.read_bytes(), what, (path.name.partition("-")[0], "", 0)), ""
    return None, "" if code == 0 else f"the run exited with {code}:\n{_end_of_output(folder)}"


def _end_of_output(folder: Path) -> str:
    return (folder / "said").read_bytes()[-3000:].decode("utf-8", "replace")


def signature(error: BaseException) -> Signature:
    """Identifies an exception by its type and the last line of project code in its traceback."""
    place: tuple[str, int] = ("", 0)
    for frame, line in traceback.walk_tb(error.__traceback__):
        if "toolcall_nb" in frame.f_code.co_filename or "fuzz" in frame.f_code.co_filename:
            place = (Path(frame.f_code.co_filename).name, line)
    return type(error).__name__, *place


def smaller(check: Callable[[bytes], None], data: bytes) -> Found | None:
    """Minimises the input while it raises the same exception; returns None if it raises nothing."""
    found = _raised(check, data)
    if found is None:
        return None
    size, tries, until = max(len(data) // 2, 1), 0, time.monotonic() + _HANGS
    while tries < _SHRINKING and time.monotonic() < until:
        at, is_less = 0, False
        while at < len(found.data):
            tries += 1
            less = _raised(check, found.data[:at] + found.data[at + size :])
            if less is not None and less.signature == found.signature:
                found, is_less = less, True
            else:
                at += size
        if size == 1 and not is_less:
            break
        size = max(size // 2, 1)
    return found


def _raised(check: Callable[[bytes], None], data: bytes) -> Found | None:
    try:
        check(data)
    except Exception as error:
        return Found(data, "".join(traceback.format_exception(error))[-4000:], signature(error))
    return None
