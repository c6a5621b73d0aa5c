"""A real local server: llama.cpp's, with a model that the test makes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.models import tiny_model
from tests.models.local_models import LOCAL
from toolcall_nb.chat import Chat
from toolcall_nb.core import events as ev
from toolcall_nb.core.transcript import State
from toolcall_nb.models import model
from toolcall_nb.models.config import Config
from toolcall_nb.tools import Registry


def weather(city: str) -> dict[str, str]:
    """The weather in a city."""
    return {"city": city, "sky": "clear"}


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with tiny_model.serving(tmp_path_factory.mktemp("model")) as address:
        yield address


def chat(address: str, name: str) -> Chat:
    config = Config(base_url=address, api_key="none needed", settings={"temperature": 0})
    return Chat(model(f"{name}:tiny", config=config), tools=Registry([weather]))


@pytest.mark.parametrize("name", LOCAL)
def test_a_whole_tool_loop(address: str, name: str) -> None:
    talk = chat(address, name)
    events = list(talk.stream("What is the weather in Paris?"))
    assert any(isinstance(event, ev.ToolInputDelta) for event in events)
    (call,) = talk.calls.values()
    assert (call.name, call.input, call.state) == ("weather", {"city": "Paris"}, State.OUTPUT_AVAILABLE)
    assert call.output == {"city": "Paris", "sky": "clear"}
    answer = talk.transcript.messages[-1]
    assert answer.text == tiny_model.ANSWER
    assert answer.metadata["usage"]["inputTokens"] > answer.metadata["usage"]["outputTokens"] > 0


def test_a_second_turn_sends_the_first_one(address: str) -> None:
    talk = chat(address, "openai-chat")
    talk.send("What is the weather in Paris?")
    first = talk.usage["inputTokens"]
    talk.send("And now?")
    assert len(talk.calls) == 2
    assert talk.usage["inputTokens"] > 2 * first
