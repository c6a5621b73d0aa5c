"""How a provider is reached, and that nobody sees the key."""

from __future__ import annotations

import copy
import dataclasses
import logging
import pickle

import pytest

from toolcall_nb.errors import UsageError
from toolcall_nb.models.config import Config, Secret

KEY = "sk-sentinel-0123456789"
CONFIG = Config("http://localhost:1/v1", KEY, {"temperature": 0}, "chat")


def test_the_key_is_shown_by_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        logging.getLogger("test").debug("%s %r", CONFIG, CONFIG.api_key)
    shown = [repr(CONFIG), str(CONFIG), f"{CONFIG}", repr(CONFIG.to_dict()), repr(CONFIG.api_key), str(CONFIG.api_key)]
    shown += [repr(copy.deepcopy(CONFIG.api_key)), caplog.text, repr([CONFIG]), f"{CONFIG.api_key}"]
    assert not [text for text in shown if KEY in text]
    assert not hasattr(CONFIG, "__dict__")
    assert not dataclasses.is_dataclass(CONFIG)


def test_the_key_is_there_for_who_sends_it() -> None:
    assert CONFIG.api_key is not None
    assert CONFIG.api_key.reveal() == KEY
    assert Config(api_key=CONFIG.api_key) == Config(api_key=KEY)


def test_the_key_is_not_written_to_disk() -> None:
    with pytest.raises(TypeError, match="not written to disk"):
        pickle.dumps(Secret(KEY))
    with pytest.raises(TypeError, match="not written to disk"):
        pickle.dumps(CONFIG)


def test_what_is_set_can_be_read_again() -> None:
    known = {"base_url": "http://localhost:1/v1", "settings": {"temperature": 0}, "wire": "chat", "api_key": "…"}
    assert CONFIG.to_dict() == known
    assert Config().to_dict() == {}
    assert repr(Config(wire="ui")) == "Config(wire='ui')"


def test_a_config_does_not_change() -> None:
    with pytest.raises(AttributeError, match="Make another one"):
        CONFIG.base_url = "http://elsewhere"
    with pytest.raises(TypeError):
        CONFIG.settings["temperature"] = 1  # type: ignore[index]  # that is what is tested


def test_equal_configs_are_equal_and_have_one_hash() -> None:
    again = Config("http://localhost:1/v1", KEY, {"temperature": 0}, "chat")
    assert again == CONFIG
    assert hash(CONFIG) == hash(again)
    assert CONFIG not in (Config("http://localhost:1/v1", "other", {"temperature": 0}, "chat"), KEY)


def test_a_base_url_is_one() -> None:
    with pytest.raises(UsageError, match="begins with http"):
        Config(base_url="localhost:1234")
