"""The cassettes that a test opens by the fixture ``toolchat_cassette``: `CassettesOfTest`."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

from toolcall_nb.errors import UsageError
from toolcall_nb.testing.cassettes import Cassette, RecordMode, ToolMode, open_cassette

_LONGEST_NAME = 100


class CassettesOfTest:
    """Opens the cassettes of one test by being called, and ends them all by `finish`."""

    def __init__(self, test_file: Path, test_id: str, record: RecordMode) -> None:
        self.written: list[Path] = []
        self._folder = test_file.parent / "cassettes" / test_file.stem
        self._test, self._record = test_id.partition("::")[2] or test_id, record
        self._opened: dict[Path, Cassette] = {}

    def __call__(
        self, model: Any = None, *, tools: ToolMode = "replay", name: str = "", dialect: str = "native"
    ) -> Cassette:
        """Opens a cassette, as `toolcall_nb.testing.cassette` does. A second one of the test needs a ``name``."""
        path = self._folder / f"{_file_name(f'{self._test}--{name}' if name else self._test)}.jsonl"
        if path in self._opened:
            raise UsageError(f"The test has opened {path} already. Give the second cassette a name: name=….")
        if self._record == "none" and not path.exists():
            raise UsageError(f"There is no cassette {path}. Record it with: pytest --toolchat-record")
        advice = "If it should be, record it again: pytest --toolchat-record-all, with the name of the test."
        self._opened[path] = open_cassette(path, model, self._record, tools, dialect, advice)
        return self._opened[path]

    def finish(self, error: BaseException | None, *, is_failure: bool) -> None:
        """Ends the cassettes of a test that ended with this error, or with none.

        What was recorded is written if the test passed, or if it failed by an assertion (``is_failure``).
        """
        for path, tape in self._opened.items():
            if tape.is_recording:
                if error is None or is_failure:
                    tape.finish()
                    self.written.append(path)
            elif error is None:
                tape.finish()
            else:
                tape.explain(error)


def _file_name(test: str) -> str:
    """A name for a file; one that had to be changed has a part that tells it apart."""
    name = re.sub(r"[^\w.,=\[\]-]+", "-", test.replace("::", "."))[:_LONGEST_NAME]
    return name if name == test.replace("::", ".") else f"{name}-{hashlib.sha256(test.encode()).hexdigest()[:8]}"
