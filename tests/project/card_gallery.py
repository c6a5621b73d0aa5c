"""Makes a card in each state from live runs: `cards`. The gallery in the documentation shows them.

Each run is a chat with a scripted model and real tools. Its events are drawn as a cell draws them while it runs, up to
the moment at which the card shows the state. Cards whose state is final are drawn as the cell saves them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from toolcall_nb import Chat, MockModel, Transcript
from toolcall_nb.approvals import Decision
from toolcall_nb.render import LiveHtml, stylesheet, to_html
from toolcall_nb.tools import Result

__all__ = ["Card", "cards", "example", "gallery"]

_FORECAST: Any = ("weather", {"city": "Lyon", "days": 3}, "call_1")
_STYLE = re.compile(r"<style>.*?</style>", re.DOTALL)


class Card(NamedTuple):
    """A card: the word that it shows as its state, when a call is in that state, and the HTML."""

    state: str
    when: str
    html: str
    more: str = ""

    @property
    def title(self) -> str:
        """The state, and what else is special about the card."""
        return f"{self.state}{self.more}"


def weather(city: str, days: int = 1) -> dict[str, Any]:
    """Returns the weather forecast for a city."""
    if city == "Nowhere":
        raise LookupError("no station is called 'Nowhere'")
    print(f"asking the station in {city}")
    return {"city": city, "sky": ["clear", "clear", "rain"][:days]}


def chart(numbers: list[float]) -> Result:
    """Draws a bar for each number."""
    bars = "".join(f"<li>{'▇' * round(number)} {number:g}</li>" for number in numbers)
    return Result({"mean": sum(numbers) / len(numbers)}, display={"text/html": f"<ul>{bars}</ul>"})


def _chat(call: Any = _FORECAST, **settings: Any) -> Chat:
    return Chat(MockModel(script=[[call], "That is all."]), tools=[weather, chart], **settings)


def _shows(html: str, state: str) -> bool:
    return re.search(rf'class="tc-state">{state}<', html) is not None


def _live(state: str, also: str = "", **settings: Any) -> str:
    """Returns the live HTML of a run as soon as a card shows the state, and the text ``also``."""
    live = LiveHtml()
    events = _chat(**settings).stream("How is Lyon?")
    for event in events:
        live.apply(event)
        if _shows(live.html, state) and also in live.html:
            html = live.html
            events.close()
            return html
    raise LookupError(f"no card of this run shows {state!r}")


def _saved(call: Any = _FORECAST, **settings: Any) -> str:
    """Returns the HTML that a cell saves of a whole run."""
    chat = _chat(call, **settings)
    chat.send("How is Lyon?")
    return to_html(chat.transcript, opened={call[2]: True})


def _stopped() -> str:
    """Returns the HTML that a cell saves of a run that is stopped while its tool runs."""
    live, chat = LiveHtml(), _chat()
    events = chat.stream("How is Lyon?")
    for event in events:
        live.apply(event)
        if _shows(live.html, "Running"):
            events.close()
    return to_html(chat.transcript)


def _read(state: str) -> str:
    """Returns the HTML of a run that was read from a file."""
    call = f"> [!tool weather call_1]+\n> state: {state}\n> input:\n>   city: Lyon\n>   days: 3\n"
    return to_html(Transcript.from_markdown(call))


def cards() -> Iterator[Card]:
    """Yields a card in each state."""
    deny: dict[str, Any] = {
        "approval_mode": "ask",
        "ask_approval": lambda call: Decision(False, "Ask about Oslo instead."),
    }
    yield Card("Writing arguments…", "The model is writing the arguments.", _live("Writing arguments…", ">city</span>"))
    yield Card("Awaiting approval", "You decide: approve, edit or deny.", _live("Awaiting approval", **deny))
    yield Card("Responded", "You have decided, and the call has not ended.", _read("approval-responded"))
    yield Card("Queued", "The arguments are complete. The tool has not started.", _live("Queued"))
    yield Card("Running", "The tool runs. What it prints appears at once.", _live("Running", "asking the station"))
    yield Card("Completed", "The call has a result. The card closes, unless you opened it.", _saved())
    plot: Any = ("chart", {"numbers": [1, 2, 6]}, "call_1")
    yield Card(
        "Completed",
        "What the result displays is shown as it is, and its data below.",
        _saved(plot),
        ", with a display of its own",
    )
    lost: Any = ("weather", {"city": "Nowhere"}, "call_1")
    yield Card("Error", "The tool failed. The message is visible in a closed card too.", _saved(lost))
    yield Card("Denied", "You denied the call. The model is told your reason.", _saved(**deny))
    yield Card("Interrupted", "You stopped the run before the call ended.", _stopped())
    yield Card("Called", "The run is over, and its source says nothing about a result.", _read("input-available"))


def gallery() -> str:
    """Returns all cards as Markdown for Sphinx, with one style sheet."""
    sections = (
        f"## {card.title}\n\n{card.when}\n\n```{{raw}} html\n{_STYLE.sub('', card.html)}\n```\n" for card in cards()
    )
    return f"```{{raw}} html\n<style>{stylesheet()}</style>\n```\n\n" + "\n".join(sections)


def example() -> str:
    """Returns a run with several calls as Markdown for Sphinx, with its style sheet."""
    calls: Any = [("weather", {"city": city, "days": 3}, city) for city in ("Lyon", "Nowhere")]
    calls.append(("chart", {"numbers": [1, 2, 6]}, "chart"))
    texts = ("I look at the forecasts first.", "**Lyon** is clear for two days. No station is called Nowhere.")
    chat = Chat(MockModel(script=[[texts[0], *calls], texts[1]]), tools=[weather, chart])
    chat.send("How are Lyon and Nowhere? Draw the days.")
    return f"```{{raw}} html\n{to_html(chat.transcript)}\n```"
