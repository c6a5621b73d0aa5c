"""A page's messages in mid-cell with the oldest and the newest ipykernel 6, with ipykernel 7.0, and with the packages
of hosted notebooks: real kernels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.environments import COLAB, KAGGLE, ROOT, make_environment
from tests.support.kernels import running_kernel

_SETUP = """%load_ext toolcall_nb
import time
from toolcall_nb import tool, events as ev

@tool
def nap() -> str:
    "Sleeps for a minute, in one call."
    time.sleep(60)

class Napper:
    def stream(self, messages, tools):
        yield ev.ToolInputAvailable("call_1", "nap", {})

napper = Napper()
done = []"""
_TURN = "%%toolchat --model napper --approve ask\nSleep."
_KERNELS = {
    "ipykernel 6.29": ("ipykernel==6.29.0",),
    "ipykernel 6": ("ipykernel<7",),
    "ipykernel 7.0": ("ipykernel==7.0.*",),
    "Colab": COLAB,
    "Kaggle": KAGGLE,
}


@pytest.mark.thorough
@pytest.mark.parametrize("packages", _KERNELS.values(), ids=_KERNELS)
def test_a_call_is_approved_and_stopped_in_mid_cell_and_the_cells_that_wait_run_afterwards_in_their_order(
    tmp_path: Path, packages: tuple[str, ...]
) -> None:
    python = make_environment(tmp_path, str(ROOT), *packages)
    with running_kernel(tmp_path, python) as kernel:
        kernel.run(_SETUP)

        def page(message: dict[str, Any]) -> None:
            """Approves the call; when it runs, asks for another cell and then for Stop."""
            if message["msg_type"] == "execute_input" and message["content"]["code"] == _TURN:
                kernel.queue("done.append('queued before')")
            if message["msg_type"] != "comm_msg":
                return
            content, comm = message["content"]["data"]["content"], message["content"]["comm_id"]
            for form in content.get("asks", {}).values():
                answer = {"approval": form["approval"], "text": form["text"], "seen": form["lines"], "scope": "once"}
                kernel.post(comm, {"type": "answer", "approved": True, **answer})
            if content.get("status", "").startswith("Running"):
                kernel.queue("done.append('queued while it ran')")
                kernel.post(comm, {"type": "stop"})

        messages = kernel.run(_TURN, react=page)
        *_, last = (each["content"]["data"] for each in messages if each["msg_type"] == "update_display_data")
        assert "state: interrupted" in last["text/markdown"]
        (printed,) = (each["content"]["text"] for each in kernel.run("print(done)") if each["msg_type"] == "stream")
        assert printed == "['queued before', 'queued while it ran']\n"
        offered = kernel.complete("%%toolchat --ap")
        assert offered["matches"] == ["--approve"]
