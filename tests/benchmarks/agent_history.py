"""Generates the history of a coding agent, the same on every machine: `agent_history`.

A turn is a request, a plan, and steps: calls with arguments in JSON, what a shell printed, diffs, contents of files,
lists of what is done. Without calls, it is as agents write it that keep their sessions in Markdown: requests are
headings of several lines, and quotes tell what was printed. Lines are short and much is code, which plain markdown-it
renders quickly; so the fixed cost of a flush weighs more than in prose.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator

__all__ = ["agent_history"]

_NAMES = ("parse_args", "load_config", "write_file", "TestMain", "io", "repo_map", "commit", "user_input", "history")
_FOLDERS = ("src/app", "tests", "docs", "app/core", "scripts")
_VERBS = ("check", "read", "update", "remove", "rename", "test", "move", "cache", "format", "count")
_THINGS = ("the input of the main test", "an error message", "all imports", "this function", "the new option", "paths")
_ASIDE = (
    "It's in `{path}`, line {n}.",
    "See [the docs](https://example.org/{n}#{name}) for `{name}()`.",
    "**Note:** `{name}` takes {n} arguments now, not {m}.",
    "The glob is `{path}*`; snake_case names like {name} stay.",
    "That costs about $0.0{n} and {m},{n}00 tokens.",
    "I'd keep `--{name}` (it's *optional*), since {path} uses it.",
)


class _Agent:
    """Writes turns with random numbers from a fixed seed."""

    def __init__(self, *, calls: bool) -> None:
        self._dice = random.Random(7)
        steps = [self._edit, self._edit, self._edit, self._edit, self._shell, self._printed, self._printed, self._file]
        self._steps = [*steps, *[self._call] * 5] if calls else steps
        self._calls = 0

    def turn(self) -> Iterator[str]:
        """Yields the blocks of one turn, each with a blank line behind it."""
        yield self._request()
        yield self._prose()
        if self._dice.random() < 0.3:
            yield self._plan()
        for _ in range(self._dice.randint(2, 5)):
            yield self._prose()
            yield self._dice.choice(self._steps)()
        yield self._done() if self._dice.random() < 0.3 else self._prose()

    def _request(self) -> str:
        """Returns what the user wrote, each line as a heading."""
        lines = [f"{self._task()} and {self._task()}: {self._task()}", *self._lines()]
        return "".join(f"#### {line.strip()}  \n" for line in lines[: self._dice.randint(1, 5)]) + "\n"

    def _task(self) -> str:
        return f"{self._dice.choice(_VERBS)} {self._dice.choice(_THINGS)}"

    def _path(self) -> str:
        return f"{self._dice.choice(_FOLDERS)}/{self._dice.choice(_NAMES)}.py"

    def _aside(self) -> str:
        n, m = self._dice.randint(1, 9), self._dice.randint(10, 99)
        return self._dice.choice(_ASIDE).format(path=self._path(), name=self._dice.choice(_NAMES), n=n, m=m)

    def _prose(self) -> str:
        told = [f"{self._task()} so that {self._task()} works, and {self._task()}.".capitalize() for _ in range(3)]
        told = told[: self._dice.randint(1, 2)]
        return " ".join([*told, self._aside()] if self._dice.random() < 0.4 else told) + "\n\n"

    def _plan(self) -> str:
        step = "{}. **{}**: {}\n   - `{}`\n   - {}\n"
        rows = range(1, self._dice.randint(3, 6))
        return "".join(step.format(n, self._task(), self._aside(), self._path(), self._task()) for n in rows) + "\n"

    def _code(self, lines: int, mark: str = "") -> str:
        found = []
        for n in range(lines):
            name = self._dice.choice(_NAMES)
            told, test = f'    """{self._task()}."""', f"    if a[{n}] != b:"
            line = ("", f"def {name}(a, b=None):", told, test, f"        return {name}(a)")[n % 5]
            found.append(f"{mark}{line}".rstrip() + "\n")
        return "".join(found)

    def _edit(self) -> str:
        path, n = self._path(), self._dice.randint(1, 400)
        if n % 2:
            old, new = self._code(self._dice.randint(1, 8), "-"), self._code(self._dice.randint(1, 12), "+")
            body = self._code(3, " ") + old + new
            return f"```diff\n--- a/{path}\n+++ b/{path}\n@@ -{n},7 +{n},9 @@\n{body}```\n\n"
        body = f"<<<<<<< SEARCH\n{self._code(4)}=======\n{self._code(self._dice.randint(3, 15))}>>>>>>> REPLACE\n"
        return f"{path}\n```python\n{body}```\n\n"

    def _file(self) -> str:
        return f"```python\n{self._code(self._dice.randint(10, 60))}```\n\n"

    def _lines(self) -> Iterator[str]:
        for n in range(self._dice.randint(2, 9)):
            path, name = self._path(), self._dice.choice(_NAMES)
            yield self._dice.choice(
                (
                    f"{path}::{name} PASSED [ {n}%]",
                    f"FAILED {path}::{name} - TypeError: {name}() got an unexpected keyword argument 'input'",
                    f'  File "{path}", line {n}, in {name}',
                    f"-rw-r--r-- 1 user user {n}321 Nov 23 17:0{n % 10} {path}",
                    f"{n}:    {name} = {name}({n})  # {self._task()}",
                    f"Commit {n:07x} agent: {self._task()}",
                )
            )

    def _shell(self) -> str:
        printed = "\n".join(self._lines())
        return f"```console\n$ python -m pytest {self._path()} -q\n{printed}\n```\n\n"

    def _printed(self) -> str:
        """Returns what an agent prints of its own work, which stands in a quote."""
        return "".join(f"> {line.strip()}  \n" for line in self._lines()) + "\n"

    def _call(self) -> str:
        self._calls += 1
        command = f"grep -rn '{self._dice.choice(_NAMES)}' {self._path()} | head -20"
        name, given = (
            ("run_command", {"command": command, "timeout": 120}),
            ("read_file", {"path": self._path(), "offset": self._calls, "limit": 200}),
            ("edit_file", {"path": self._path(), "edits": [{"old": self._code(3), "new": self._code(5)}]}),
        )[self._calls % 3]
        result = "".join(f">   {line.strip()}\n" for line in self._lines())
        head = f"> [!tool {name} id=call_{self._calls}]\n> state: output-available\n> input: {json.dumps(given)}\n"
        return f"{head}> output: |\n{result}\n"

    def _done(self) -> str:
        rows = [f"- [{'x' if n % 3 else ' '}] {self._task()} in `{self._path()}`" for n in range(5)]
        return "\n".join(rows[: self._dice.randint(2, 5)]) + "\n\n"


def agent_history(size: int, *, calls: bool = True) -> str:
    """Returns a history of ``size`` characters, or one block more."""
    agent = _Agent(calls=calls)
    pieces: list[str] = []
    length = 0
    while True:
        for block in agent.turn():
            pieces.append(block)
            length += len(block)
            if length >= size:
                return "".join(pieces)
