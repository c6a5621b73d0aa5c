"""Stores files that this version saves, to test that later versions read them: ``./dev fixture``.

It writes into tests/fixtures/released/VERSION: an executed notebook with outputs of every kind; a notebook that was
saved while a cell ran; a thread of the server; a saved transcript, with its HTML page and its events; and
``transcripts.json`` with all their transcripts as plain values. The same code always writes the same files.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from contextlib import redirect_stdout
from enum import Enum
from io import StringIO
from pathlib import Path
from typing import Any

import msgspec
import nbformat
from msgspec.structs import replace
from nbclient import NotebookClient
from nbformat import NotebookNode

import toolcall_nb
from tests.fixtures.render.samples import EVERYTHING
from tests.support.sdk_replies import COMPLETION, MESSAGES
from tests.support.servers import ask, serving
from toolcall_nb.cli import main
from toolcall_nb.core.transcript import Transcript
from toolcall_nb.events import MISSING, from_dict
from toolcall_nb.notebook.cell_outputs import MEANWHILE

__all__ = [
    "FOLDER",
    "folder_of",
    "markdown_texts",
    "plain_value",
    "read_values",
    "transcript_outputs",
    "versions",
    "write_fixture",
]

_ROOT = Path(__file__).resolve().parents[2]
FOLDER = _ROOT / "tests" / "fixtures" / "released"

_TOOLS = '''
from toolcall_nb import Chat, Transcript, show, tool
from toolcall_nb import events as ev
from toolcall_nb.approvals import Decision


class Chart:
    """What shows itself, in several forms."""

    def __repr__(self):
        return "Chart of 3 bars"

    def _repr_svg_(self):
        return '<svg xmlns="http://www.w3.org/2000/svg" width="90" height="40"><rect width="80" height="30"/></svg>'


@tool
def weather(city: str, days: int = 1) -> dict:
    """The weather forecast for a city."""
    return {"city": city, "forecast": ["clear", "rain"][:days], "high": 24.5}


@tool
def chart(values: list[int]) -> Chart:
    """Draw a bar chart."""
    print("drawing")
    return Chart()


@tool
def lines(count: int) -> str:
    """Many lines."""
    return "".join(f"line {number}\\n" for number in range(count))


@tool
def average(numbers: list[float]) -> float:
    """The average of some numbers."""
    return sum(numbers) / len(numbers)


@tool
def wait() -> None:
    """Wait until the person has enough."""
    print("waiting")
    raise KeyboardInterrupt


class Calls:
    """A model that thinks, makes the calls that it was made with, and then says so."""

    def __init__(self, *calls):
        self.calls = calls

    def stream(self, messages, tools):
        if messages[-1].role != "user":
            yield from (ev.TextStart("t"), ev.TextDelta("t", "That is **it**: $x^2$."), ev.TextEnd("t"))
            return
        yield from (ev.ReasoningStart("r"), ev.ReasoningDelta("r", "One call after another."), ev.ReasoningEnd("r"))
        for number, (name, arguments) in enumerate(self.calls, 1):
            yield ev.ToolInputAvailable(f"call_{number}", name, arguments)


drawing = Calls(("chart", {"values": [20, 45, 80]}), ("lines", {"count": 400}))
careless = Calls(("average", {"numbers": []}))
patient = Calls(("weather", {"city": "Rome"}), ("wait", {}), ("weather", {"city": "Oslo"}))
'''

_ALL = Transcript(tuple(replace(message, aborted=None) for message in EVERYTHING.messages))
"""A transcript with every part and every state; messages are not aborted, since that would end their open calls."""

_CELLS = (
    "%load_ext toolcall_nb",
    _TOOLS.strip(),
    "%%toolchat --tools weather\nWhat is the weather in Paris for 2 days?",
    "%%toolchat --model drawing\nDraw, and write much.",
    "%%toolchat --model careless --new\nThe average of nothing?",
    "%%toolchat --model patient --new\nThe weather, and then wait.",
    "%%toolchat --approve ask --tools weather --new\nWhat is the weather in Cairo?",
    "%%toolchat --dialect json --tools weather\nWhat is the weather in Kyoto?",
    "%%toolchat --model mock:failing --tools weather\nWhat is the weather in Rome?",
    f"%%toolchat --render\n{_ALL.to_markdown()}",
    "%%toolchat --replay --speed 0\nLet me look.\n\n> [!tool weather call_7]+ The weather\n> input:\n>   city: Bergen\n"
    "> output: rain\n\nTake an umbrella.",
    "careful = Chat(tools=['weather'], speed=None, ask_approval=lambda call: "
    "Decision(True, input={**call.input, 'days': 2}, reason='At most two.'))\n"
    "careful.send('The weather in Hanoi for 14 days, please.')\ncareful.transcript",
    f"show({MESSAGES!r})",
    f"show({COMPLETION!r})",
    'show([{"role": "user", "content": [{"type": "text", "text": "And in Oslo?"}]}, {"role": "assistant", "content": '
    '[{"type": "text", "text": "I look."}, {"type": "tool_use", "id": "toolu_1", "name": "weather", '
    '"input": {"city": "Oslo"}}]}, {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", '
    '"content": "Snow"}]}])',
    'show([{"parts": [{"type": "text", "text": "I look."}, {"type": "tool-weather", "toolCallId": "c", "state": '
    '"output-available", "input": {"city": "Rome"}, "output": "Sun"}], "role": "assistant", "id": "m"}])',
    "show(iter(['> [!tool weather call_9]\\n> in', 'put:\\n>   city: Rome\\n']))",
)
"""The executed cells: live turns, an error, an interrupt, a denial, an approval, and values of every kind to show."""

_METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


_VALUES = ("input", "output", "original_input")
"""Fields in which an empty value differs from a missing one."""


def folder_of(version: str) -> Path:
    """Returns the folder of a version's files."""
    return FOLDER / version


def write_fixture(folder: Path) -> None:
    """Writes all files of this version."""
    folder.mkdir(parents=True, exist_ok=True)
    nbformat.write(_executed(), folder / "outputs.ipynb")
    nbformat.write(_cut_off(), folder / "cut-off.ipynb")
    (folder / "talk.md").write_text(_ALL.to_markdown(versioned=True), "utf-8")
    main(["render", str(folder / "talk.md"), "-o", str(folder / "page.html")])
    with redirect_stdout(StringIO()) as out:
        main(["events", str(folder / "talk.md")])
    (folder / "events.jsonl").write_text(out.getvalue(), "utf-8")
    (folder / "thread.md").write_text(_thread(), "utf-8")
    text = json.dumps(read_values(folder), indent=1, ensure_ascii=False, sort_keys=True)
    (folder / "transcripts.json").write_text(f"{text}\n", "utf-8")


def transcript_outputs(path: Path) -> list[dict[str, str]]:
    """Returns the MIME bundles of the notebook's transcript outputs, in order."""
    notebook: NotebookNode = nbformat.read(path, as_version=4)
    data = [output.get("data", {}) for cell in notebook.cells for output in cell.get("outputs", ())]
    return [each for each in data if {"text/html", "text/markdown", "text/plain"} <= set(each)]


def markdown_texts(folder: Path) -> dict[str, str]:
    """Returns each Markdown text of a version, by its file and its number in that file."""
    found = {path.name: path.read_text("utf-8") for path in sorted(folder.glob("*.md"))}
    for path in sorted(folder.glob("*.ipynb")):
        texts = [bundle["text/markdown"] for bundle in transcript_outputs(path)]
        found |= {f"{path.name} {number}": text for number, text in enumerate(texts)}
    return found


def read_values(folder: Path) -> dict[str, Any]:
    """Reads each text and the events with the current code; returns the transcripts as plain values."""
    said = {name: plain_value(Transcript.from_markdown(text)) for name, text in markdown_texts(folder).items()}
    if (path := folder / "events.jsonl").exists():
        lines = path.read_text("utf-8").splitlines()
        said[path.name] = plain_value(Transcript.from_events(from_dict(json.loads(line)) for line in lines))
    return said


def plain_value(value: Any) -> Any:
    """Returns a transcript's value as plain JSON without empty fields; it uses no codec of the package."""
    if isinstance(value, msgspec.Struct):
        own = {name: getattr(value, name) for name in value.__struct_fields__ if name not in ("diagnostics", "record")}
        told = {name: plain_value(each) for name, each in own.items() if each is not MISSING}
        full = {name: each for name, each in told.items() if name in _VALUES or each not in (None, [], {})}
        return {"is": type(value).__name__, **full}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, dict):
        return {key: plain_value(each) for key, each in value.items()}
    return [plain_value(each) for each in value] if isinstance(value, list | tuple) else value


def _notebook(*cells: str) -> NotebookNode:
    v4: Any = nbformat.v4
    made = [v4.new_code_cell(source, id=f"cell-{number}") for number, source in enumerate(cells)]
    notebook: NotebookNode = v4.new_notebook(cells=made, metadata=_METADATA)
    return notebook


def _executed() -> NotebookNode:
    notebook = _notebook(*_CELLS)
    with tempfile.TemporaryDirectory() as folder:
        resources = {"metadata": {"path": folder}}
        NotebookClient(
            notebook, timeout=120, kernel_name="python3", record_timing=False, allow_errors=True, resources=resources
        ).execute(env={**os.environ, "PYTHONPATH": str(_ROOT)})
    notebook.metadata = nbformat.from_dict(_METADATA)
    return notebook


def _cut_off() -> NotebookNode:
    """Returns a notebook that was saved while a cell ran: its output is a widget view and the placeholder."""
    view = {"model_id": "0123456789abcdef0123456789abcdef", "version_major": 2, "version_minor": 1}
    data = {**MEANWHILE, "application/vnd.jupyter.widget-view+json": view}
    notebook = _notebook("%%toolchat\nWhat is the weather in Paris?", "print('below')")
    v4: Any = nbformat.v4
    notebook.cells[0].outputs = [v4.new_output("display_data", data)]
    notebook.cells[1].outputs = [v4.new_output("stream", name="stdout", text="below\n")]
    return notebook


def _thread() -> str:
    with tempfile.TemporaryDirectory() as folder:
        with serving(store=folder) as client:
            ask(client, "What is the weather in Lisbon?")
            ask(client, "And tomorrow?")
        return (Path(folder) / "t.md").read_text("utf-8")


def versions() -> dict[str, bool]:
    """Returns the versions in the changelog, newest first, and whether each is released."""
    text = (_ROOT / "CHANGELOG.md").read_text("utf-8")
    found = re.findall(r"^## (Unreleased: )?\[?(\d+\.\d+\.\d+)", text, re.MULTILINE)
    return {version: not unreleased for unreleased, version in found}


if __name__ == "__main__":
    if versions()[toolcall_nb.__version__]:
        sys.exit(f"{toolcall_nb.__version__} is released, so its fixture must not change. Set the next version first.")
    write_fixture(folder_of(toolcall_nb.__version__))
    print(f"{toolcall_nb.__version__}: stored")
