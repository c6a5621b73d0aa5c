"""The view of a kernel's first run is open before the rest that the run needs is imported."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.kernels import Kernel, Messages, running_kernel

_VIEW = "application/vnd.jupyter.widget-view+json"


def _state(messages: Messages) -> dict[str, Any]:
    """Returns the state with which the view is opened."""
    opened = (each["content"]["data"].get("state", {}) for each in messages if each["msg_type"] == "comm_open")
    state: dict[str, Any] = next(state["snapshot"] for state in opened if "snapshot" in state)
    return state


def _steps(messages: Messages) -> list[dict[str, Any]]:
    return [each["content"]["data"]["content"] for each in messages if each["msg_type"] == "comm_msg"]


def _kinds(messages: Messages) -> list[str]:
    return [each["msg_type"] for each in messages]


def _has_renderer(kernel: Kernel) -> bool:
    code = "import sys; print(any(name in sys.modules for name in ('markdown_it', 'toolcall_nb.chat')))"
    (printed,) = (each["content"]["text"] for each in kernel.run(code) if each["msg_type"] == "stream")
    return bool(printed.strip() == "True")


def test_the_first_run_takes_the_view_that_was_open_before_it(tmp_path: Path) -> None:
    with running_kernel(tmp_path) as kernel:
        kernel.run("%load_ext toolcall_nb")
        first = kernel.run("%%toolchat --speed 0\nHello")
        assert _state(first)["seq"] == -1
        assert _state(first)["status"] == "Starting…"
        assert _steps(first)[0]["type"] == "state"
        assert _steps(first)[0]["seq"] == 0
        assert _steps(first)[0]["info"] == "mock"
        assert _steps(first)[0]["clocks"][""]["elapsed"] > 0  # the time since the view was opened
        (shown,) = (each["content"] for each in first if each["msg_type"] == "display_data")
        last = [each["content"] for each in first if each["msg_type"] == "update_display_data"][-1]
        assert shown["transient"] == last["transient"]
        assert _VIEW in shown["data"]
        assert "Hello" in last["data"]["text/html"]
        second = kernel.run("%%toolchat --speed 0\nHello")
        assert _state(second)["seq"] == 0
        assert _kinds(second).count("display_data") == 1


def test_a_first_run_that_cannot_begin_leaves_no_view(tmp_path: Path) -> None:
    with running_kernel(tmp_path) as kernel:
        kernel.run("%load_ext toolcall_nb")
        refused = kernel.run("%%toolchat --model nonesuch\nHello")
        kinds = _kinds(refused)
        assert kinds.index("display_data") < kinds.index("clear_output") < kinds.index("comm_close")
        assert "update_display_data" not in kinds
        (said,) = (each["content"]["text"] for each in refused if each["msg_type"] == "stream")
        assert "nonesuch" in said
        assert "clear_output" not in _kinds(kernel.run("%%toolchat --speed 0\nHello"))


def test_a_prompt_that_cannot_be_filled_opens_no_view_and_imports_nothing(tmp_path: Path) -> None:
    with running_kernel(tmp_path) as kernel:
        kernel.run("%load_ext toolcall_nb", attended=False)  # nothing is imported early
        assert not {"comm_open", "display_data"} & set(_kinds(kernel.run("%%toolchat\n{nonesuch}")))
        assert not _has_renderer(kernel)


def test_a_cell_that_shows_more_than_the_run_opens_no_view_before_it(tmp_path: Path) -> None:
    code = "print('before')\nget_ipython().run_cell_magic('toolchat', '--speed 0 --model nonesuch', 'Hello')"
    with running_kernel(tmp_path) as kernel:
        kernel.run("%load_ext toolcall_nb")
        assert not {"comm_open", "display_data", "clear_output"} & set(_kinds(kernel.run(code)))
        assert _state(kernel.run(code.replace(" --model nonesuch", "")))["seq"] == 0


def test_a_first_run_that_nobody_watches_opens_no_view(tmp_path: Path) -> None:
    with running_kernel(tmp_path) as kernel:
        kernel.run("%load_ext toolcall_nb")
        assert "comm_open" not in _kinds(kernel.run("%%toolchat --speed 0\nHello", attended=False))
