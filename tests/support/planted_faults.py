"""Plants one fault at a time in a copy of the package and checks that a test fails: ``./dev faults [NAME …]``.

`FAULTS` lists at least one fault for each room, with the tests that must find it. They run in the quick tier first and
then in the usual one, so the report says which command finds the fault. The test that fails must pass without it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

__all__ = ["FAULTS", "Fault", "find", "main"]

_ROOT = Path(__file__).resolve().parents[2]
_COPIED = ("toolcall_nb", "tests", "notebooks", "docs", "requirements", "binder", "dev", "pyproject.toml", "README.md")
_TESTS_FAILED = 1
"""pytest's exit code for failed tests. Codes other than this and 0 mean that the tests could not run."""


class Fault(NamedTuple):
    """A fault: its description, the package's file, the old and the new text, and the tests that must find it."""

    name: str
    file: str
    old: str
    new: str
    tests: str

    def plant(self, package: Path) -> None:
        """Replaces the text in the file; raises `ValueError` unless the text occurs exactly once."""
        path = package / self.file
        source = path.read_text("utf-8")
        if source.count(self.old) != 1:
            raise ValueError(
                f"{self.name}: the old text occurs {source.count(self.old)} times in {self.file}. Update this fault."
            )
        path.write_text(source.replace(self.old, self.new), "utf-8")


FAULTS = (
    Fault(
        "a call that is interrupted while it streams stays open",
        "core/call_states.py",
        '    "data-tool-interrupted": State.INTERRUPTED,\n',
        "",
        "tests/core/test_call_states.py",
    ),
    Fault(
        "the reducer forgets the error text of wrong input",
        "core/reducer.py",
        'changes["error"] = event.error_text',
        'changes["error"] = ""',
        "tests/core/test_reducer.py tests/chat/test_chat_tools.py",
    ),
    Fault(
        "a text delta under another id is added to the open block",
        "core/reducer.py",
        "if slot is None or slot.block != event.id or",
        "if slot is None or",
        "tests/core/test_reducer.py",
    ),
    Fault(
        "the model is not told why a call was denied",
        "core/result_text.py",
        'if reason else f"{_DENIED}."',
        'if False else f"{_DENIED}."',
        "tests/core/test_call_display.py tests/chat/test_chat_tools.py tests/dialects/test_json_call.py",
    ),
    Fault(
        "the text no is written without quotes, which other readers of YAML take for false",
        "markdown/yaml_text.py",
        "        and text.lower() not in _YAML_1_1\n",
        "",
        "tests/markdown/test_yaml.py",
    ),
    Fault(
        "a newer version of the format is read without a diagnostic",
        "markdown/front_matter.py",
        "if version > FORMAT_VERSION\n",
        "if version > _HIGHEST\n",
        "tests/markdown/test_format_version.py",
    ),
    Fault(
        "a result with success: false is reported to the model as a success",
        "dialects/json_call.py",
        'if isinstance(call.output, dict) and call.output.get("success") is False:',
        'if isinstance(call.output, dict) and call.output.get("success") is None:',
        "tests/dialects/test_json_call.py",
    ),
    Fault(
        "a call of an unknown tool is not reported as one",
        "dialects/json_call.py",
        'f"Tool not found: {call.name}" if is_unknown(call, tool_names) else',
        "",
        "tests/dialects/test_json_call.py",
    ),
    Fault(
        "an update after a block's end is not reported as a violation",
        "stages/checking.py",
        "elif block_id in self._ended:",
        "elif False:",
        "tests/stages/test_stages.py",
    ),
    Fault(
        "a comment in an event stream becomes an event's data",
        "wire/sse.py",
        'case "data":',
        'case "data" | "":',
        "tests/wire/test_sse.py",
    ),
    Fault(
        "LF after a CR that ended a piece counts as another line",
        "wire/sse.py",
        'data.removeprefix(b"\\n"), False',
        "data, False",
        "tests/wire/test_sse.py",
    ),
    Fault(
        "only the last request of an Anthropic message is counted",
        "adapters/common_events.py",
        "total[name] = total.get(name, 0) + count",
        "total[name] = count",
        "tests/adapters/test_common_events.py",
    ),
    Fault(
        "all but the first choice of an OpenAI reply are lost",
        "adapters/openai/chat.py",
        "waiting += reader.choose(choice)",
        "reader.choose(choice)",
        "tests/adapters/test_openai.py",
    ),
    Fault(
        "a list of chunks is not recognised as a stream",
        "adapters/recognise.py",
        "are_items = all(_is_item",
        "are_items = not all(_is_item",
        "tests/adapters/test_adapters.py tests/adapters/test_openai.py",
    ),
    Fault(
        "the escape function leaves <",
        "core/escaping.py",
        '.replace("<", "&lt;")',
        "",
        "tests/render/test_safety.py",
    ),
    Fault(
        "a link may run a script",
        "core/escaping.py",
        "(?:https?|mailto):",
        "(?:https?|mailto|javascript):",
        "tests/render/test_safety.py tests/render/test_text.py",
    ),
    Fault(
        "a terminal is sent escape sequences",
        "core/escaping.py",
        "\\x00-\\x08\\x0b-\\x1f",
        "\\x00-\\x08\\x0b-\\x1a",
        "tests/render/test_safety.py tests/render/test_text.py",
    ),
    Fault(
        "a known secret is masked once and not everywhere",
        "redaction/masker.py",
        "self._replaced(text, spans)\n        return text",
        "self._replaced(text, spans[:1])\n            break\n        return text",
        "tests/redaction/test_masking.py",
    ),
    Fault(
        "a path may leave the workspace by a link or by ..",
        "tools/workspaces.py",
        "if not self._contains(resolved):",
        "if not self._contains(Path(os.path.join(self.root, start))):",
        "tests/tools/test_workspaces.py",
    ),
    Fault(
        "a call with wrong arguments is not marked as wrong input",
        "tools/execution/runner.py",
        "return Outcome(error=str(error), exception=error, wrong_input=True)",
        "return Outcome(error=str(error), exception=error)",
        "tests/tools/test_parallel.py",
    ),
    Fault(
        "a result that is longer than the limit is not truncated",
        "core/result_text.py",
        "return truncate_text(text, limit) if len(text) > limit else None",
        "return None",
        "tests/tools/test_tool_results.py",
    ),
    Fault(
        "a denied call runs",
        "approvals/gate.py",
        "input=json.loads(input_json)) if decision.approved else None",
        "input=json.loads(input_json))",
        "tests/chat/test_chat_tools.py",
    ),
    Fault(
        "a call is approved if the approver raises",
        "approvals/gate.py",
        'return Decision(False, f"No answer could be had:',
        'return Decision(True, f"No answer could be had:',
        "tests/chat/test_chat.py",
    ),
    Fault(
        "an approval of a tool also covers a new tool of the same name",
        "approvals/__init__.py",
        "return tool.name, tool.function",
        "return tool.name, print",
        "tests/chat/test_chat_tools.py tests/notebook/test_approvals.py",
    ),
    Fault(
        "a request is tried again after its reply has begun",
        "chat/request.py",
        "if has_begun or not error.may_retry",
        "if not error.may_retry",
        "tests/models/test_retries.py",
    ),
    Fault(
        "a call that a person must be asked about starts, and asks, while the model still writes",
        "chat/early_calls.py",
        "(not tool.eager or self._gate.asks(tool))",
        "not tool.eager",
        "tests/chat/test_early_calls.py",
    ),
    Fault(
        "a call whose arguments were cut off runs",
        "chat/calls.py",
        "if call.state is State.INPUT_STREAMING:",
        "if False:",
        "tests/chat/test_chat_tools.py tests/chat/test_chat.py",
    ),
    Fault(
        "a Retry-After header is read as minutes",
        "sources/provider_errors/retry_after.py",
        "return float(text) * unit if",
        "return float(text) * unit * 60 if",
        "tests/sources/test_provider_errors.py tests/models/test_retries.py",
    ),
    Fault(
        "a replay that has no answer left repeats the last one",
        "models/replay.py",
        "if turn > len(self._answers):",
        "if False:",
        "tests/models/test_replay.py",
    ),
    Fault(
        "a call that was made is shown as queued where nothing says that its tool starts",
        "render/shown_states.py",
        "    (State.INPUT_AVAILABLE, None): _CALLED,\n",
        "    (State.INPUT_AVAILABLE, None): _QUEUED,\n",
        "tests/render/test_html_output.py tests/render/test_text.py",
    ),
    Fault(
        "a settled definition of a link does not count against a later one",
        "incremental_markdown/link_definitions.py",
        "return label in self.settled or super().__contains__(label)",
        "return super().__contains__(label)",
        "tests/incremental_markdown/test_incremental.py",
    ),
    Fault(
        "two users of one process lock the same file",
        "threads/file_lock.py",
        "if self._key in _held:",
        "if False:",
        "tests/server/test_store.py tests/batches/test_run_many.py",
    ),
    Fault(
        "patches of two nodes are merged into one",
        "live_runs/document.py",
        "if deleted == 0 and end == (node, start):",
        "if deleted == 0 and end is not None and end[1] == start:",
        "tests/render/test_live_html.py tests/notebook/test_widget.py",
    ),
    Fault(
        "positions of patches count emoji as one character",
        "live_runs/document.py",
        'len(text.encode("utf-16-le")) // 2',
        "len(text)",
        "tests/render/test_live_html.py tests/notebook/test_widget.py",
    ),
    Fault(
        "the page keeps the text that a splice deletes",
        "frontend/transcript.js",
        "node.html.slice(start + deleted)",
        "node.html.slice(start)",
        "tests/browser/test_page.py",
    ),
    Fault(
        "the server answers to any host's name",
        "server/middleware.py",
        'or "*" in hosts):',
        "or True):",
        "tests/server/test_guards.py",
    ),
    Fault(
        "the server takes any token",
        "server/middleware.py",
        "or not hmac.compare_digest(credentials.strip().encode(), token.encode())",
        "",
        "tests/server/test_guards.py",
    ),
    Fault(
        "a stored thread is written over in place",
        "server/store.py",
        "            os.replace(part, path)\n",
        "            path.write_bytes(data)\n",
        "tests/server/test_store.py",
    ),
    Fault(
        "in JupyterLite, the page is not told on which channel the kernel hears a click on Stop",
        "notebook/widget.py",
        'state["snapshot"]["channel"] = self._channel.name',
        "pass",
        "tests/notebook/test_page_channel.py",
    ),
    Fault(
        "messages that had arrived before a run are not read, so no later one wakes the kernel",
        "notebook/early_messages.py",
        "        self._wake()\n        while not self._over",
        "        while not self._over",
        "tests/notebook/test_early_messages.py",
    ),
    Fault(
        "a worker goes on with a turn that another has ended",
        "server/redis_journal.py",
        '        self._lose(journal, changes, "Another worker took this one for ended, and has ended the turn.")\n',
        "        journal.confirm()\n",
        "tests/server/test_redis.py",
    ),
    Fault(
        "braces in a prompt are filled twice",
        "notebook/interpolation.py",
        "filled = _FIELD.sub(value, text)",
        "filled = _FIELD.sub(value, _FIELD.sub(value, text))",
        "tests/notebook/test_magic.py tests/notebook/test_config_magic.py",
    ),
    Fault(
        "a key may be written into a cell",
        "notebook/model_settings.py",
        "if masked(written) != written:",
        "if False:",
        "tests/notebook/test_config_magic.py tests/notebook/test_config.py",
    ),
    Fault(
        "the command line prints a page with its secrets",
        "cli/file_commands.py",
        "if not options.no_masking:",
        "if options.no_masking:",
        "tests/redaction/test_registered_secrets.py",
    ),
    Fault(
        "what is not known is 0 in a table of calls",
        "core/data_frames.py",
        "pandas.NA if value is None else value",
        "0 if value is None else value",
        "tests/core/test_calls.py",
    ),
    Fault(
        "a file that cannot be read hides those behind it",
        "runs/collection.py",
        "unread.append(UnreadFile(path, str(error)))",
        "break",
        "tests/runs/test_collection.py",
    ),
    Fault(
        "a run of a batch that failed counts as made",
        "batches/run_store.py",
        'if header.get("state") == _DONE:',
        "if header:",
        "tests/batches/test_run_many.py",
    ),
    Fault(
        "a search looks at names and results, and not at arguments",
        "core/text_search.py",
        'yield from _value_texts("arguments", call.input)',
        "pass",
        "tests/core/test_calls.py tests/runs/test_collection.py",
    ),
    Fault(
        "two times that differ by more than a tenth of a second are different, however long they are",
        "core/comparison.py",
        "max(_MORE_THAN, _SHARE * max(a, b))",
        "_MORE_THAN",
        "tests/runs/test_difference.py",
    ),
    Fault(
        "a cassette does not compare the messages of a request",
        "testing/request_bodies.py",
        'return {"model": model, "tools": tools, "messages": list(messages)}',
        'return {"model": model, "tools": tools, "messages": list(messages)[:0]}',
        "tests/testing/test_cassettes.py",
    ),
    Fault(
        "a secret that the model cuts in two is in the cassette",
        "testing/cassette_writing.py",
        "    events = list(_joined(reply))\n",
        "    events = list(reply)\n",
        "tests/testing/test_cassettes.py",
    ),
    Fault(
        "expected calls take the first position that fits, though another one needs it",
        "core/matching.py",
        "                queue.append(items[position])\n",
        "",
        "tests/testing/test_assert_calls.py tests/runs/test_alignment.py tests/core/test_matching.py",
    ),
    Fault(
        "a call of an agent keeps an id that another call of the chat has",
        "agents/base.py",
        "        while call_id in self._used:\n",
        "        while False:\n",
        "tests/agents",
    ),
    Fault(
        "a failed run counts as done",
        "batches/batch.py",
        "RowState.ERROR if result.error else RowState.DONE",
        "RowState.DONE",
        "tests/batches",
    ),
    Fault(
        "spans that a watch leaves out are not counted",
        "watching/span_store.py",
        "                self.left_out += 1\n",
        "",
        "tests/watching/test_session.py",
    ),
)


def _failing(folder: Path, tests: str, tier: str) -> str | None:
    """Runs the tests until one fails; returns its id without parameters, or None if all pass or they cannot run."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment |= {"TOOLCALL_NB_TIER": tier, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(folder)}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n0", "-p", "no:cacheprovider", *tests.split()]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    failed = re.search(r"^FAILED ([^\s\[]+)", done.stdout, re.MULTILINE)
    return failed[1] if failed is not None and done.returncode == _TESTS_FAILED else None


def find(fault: Fault, folder: Path) -> str | None:
    """Plants the fault in the copy in ``folder``; returns the command and the test that find it, or None.

    A test that also fails without the fault does not count.
    """
    original = folder / "original"
    shutil.copy2(folder / "toolcall_nb" / fault.file, original)
    for tier, command in (("quick", "./dev check"), ("usual", "./dev test")):
        fault.plant(folder / "toolcall_nb")
        try:
            test = _failing(folder, fault.tests, tier)
        finally:
            shutil.copy2(original, folder / "toolcall_nb" / fault.file)
        if test is not None and _failing(folder, test, tier) is None:
            return f"{command}: {test}"
    return None


def main(*names: str) -> int:
    """Prints for each fault, or for those whose names contain one of ``names``, which command and test find it."""
    chosen = [fault for fault in FAULTS if not names or any(name in fault.name for name in names)]
    missed = 0
    with TemporaryDirectory() as place:
        folder = Path(place)
        for name in _COPIED:
            source = _ROOT / name
            if source.is_dir():
                shutil.copytree(source, folder / name, symlinks=True)
            else:
                shutil.copy2(source, folder / name)
        for fault in chosen:
            found = find(fault, folder)
            missed += found is None
            print(f"{fault.name} ({fault.file})\n    {found or 'NOT FOUND'}", flush=True)
    print(f"{len(chosen) - missed} of {len(chosen)} planted faults are found")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
