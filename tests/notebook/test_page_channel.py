"""In Pyodide, a page's messages arrive on a channel of the browser. Here, Pyodide's modules are stood in for.

tests/browser/test_jupyterlite.py has the real ones, in JupyterLite's page.
"""

from __future__ import annotations

import sys
import threading
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

import pytest

from toolcall_nb.notebook import early_messages
from toolcall_nb.notebook.early_messages import PageChannel
from toolcall_nb.threads import interrupts


class Channel:
    """The browser's class, with the open channels by name."""

    open: ClassVar[dict[str, Channel]] = {}
    onmessage: Any

    @classmethod
    def new(cls, name: str) -> Channel:
        cls.open[name] = cls()
        return cls.open[name]

    def close(self) -> None:
        self.onmessage = None

    def send(self, message: dict[str, Any]) -> None:
        self.onmessage(SimpleNamespace(data=SimpleNamespace(to_py=lambda: message)))


class Proxy:
    def __init__(self, function: Any) -> None:
        self.function = function
        self.is_destroyed = False

    def __call__(self, *arguments: Any) -> Any:
        return self.function(*arguments)

    def destroy(self) -> None:
        self.is_destroyed = True


@pytest.fixture
def browser(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Makes this Python seem to be Pyodide's; returns its module ``pyodide.ffi``."""
    js, ffi = ModuleType("js"), ModuleType("pyodide.ffi")
    vars(js)["BroadcastChannel"] = Channel
    vars(ffi).update(create_proxy=Proxy, can_run_sync=lambda: True)
    monkeypatch.setitem(sys.modules, "js", js)
    monkeypatch.setitem(sys.modules, "pyodide", ModuleType("pyodide"))
    monkeypatch.setitem(sys.modules, "pyodide.ffi", ffi)
    monkeypatch.setattr(early_messages, "IN_BROWSER", True)
    return ffi


def test_a_message_of_the_page_is_received_until_the_channel_is_closed(browser: ModuleType) -> None:
    received: list[Any] = []
    channel = PageChannel.open("run-1", received.append)
    assert channel is not None
    Channel.open[channel.name].send({"type": "stop"})
    assert received == [{"method": "custom", "content": {"type": "stop"}}]
    handler = Channel.open["run-1"].onmessage
    channel.close()
    assert Channel.open["run-1"].onmessage is None
    assert handler.is_destroyed


def test_there_is_no_channel_outside_of_a_browser_or_in_one_that_cannot_switch_stacks(browser: ModuleType) -> None:
    vars(browser)["can_run_sync"] = lambda: False
    assert PageChannel.open("run-2", print) is None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(early_messages, "IN_BROWSER", False)
        vars(browser)["can_run_sync"] = lambda: True
        assert PageChannel.open("run-2", print) is None


def test_the_widget_tells_the_page_the_channels_name_and_handles_what_comes_on_it(browser: ModuleType) -> None:
    from toolcall_nb.live_runs.document import LiveDocument
    from toolcall_nb.notebook.widget import ShownRun, TranscriptWidget
    from toolcall_nb.render import LiveHtml

    stopped = threading.Event()
    document = LiveDocument(LiveHtml(), lambda step: None, info="mock", timings={})
    widget = TranscriptWidget(ShownRun(document, stopped.set, lambda answer: None, lambda seconds: None, lambda: None))
    try:
        assert widget.receives_in_cells
        assert not widget.is_shown
        Channel.open[widget.get_state()["snapshot"]["channel"]].send({"type": "stop"})
        assert stopped.wait(10)
        assert widget.is_shown
    finally:
        widget.close()


def test_in_a_browser_a_wait_sleeps_so_that_something_else_can_set_the_event(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interrupts, "IN_BROWSER", True)
    slept: list[float] = []
    event = threading.Event()

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        event.set()

    monkeypatch.setattr(interrupts, "time", SimpleNamespace(sleep=sleep))
    assert interrupts.wait_for(event, 0.1)
    assert interrupts.wait_for(event, 0.1)
    assert slept == [0.1]
