"""Runs cells in a real Qt console without a screen, and prints what it shows; runs in an environment that has it.

The first argument says which: "qtconsole", or "spyder" for the console of Spyder's whole main window, in which the
kernel is one of spyder-kernels. The other arguments are the cells. A question is answered with the keys "y" and Return.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NoReturn

import psutil
from qtconsole.rich_jupyter_widget import RichJupyterWidget
from qtpy.QtCore import Qt, QTimer
from qtpy.QtTest import QTest
from qtpy.QtWidgets import QApplication


def open_qtconsole() -> RichJupyterWidget:
    """Starts a kernel, and shows qtconsole's widget."""
    from qtconsole.manager import QtKernelManager

    manager = QtKernelManager(kernel_name="python3")
    manager.start_kernel()
    client = manager.client()
    client.start_channels()
    widget = RichJupyterWidget()
    widget.kernel_manager, widget.kernel_client = manager, client
    widget.show()
    return widget


def open_spyder() -> RichJupyterWidget:
    """Opens Spyder's main window with all its plugins; returns the widget of its console, which starts the kernel."""
    os.environ["SPYDER_PYTEST"] = "1"  # so Spyder returns its window, and leaves the event loop to this program
    sys.argv[1:] = ["--new-instance"]
    from spyder.api.plugins import Plugins  # type: ignore[import-not-found]
    from spyder.app import start  # type: ignore[import-not-found]

    consoles = start.main().get_plugin(Plugins.IPythonConsole)
    wait_until(lambda: consoles.get_current_shellwidget() is not None)
    widget: RichJupyterWidget = consoles.get_current_shellwidget()
    wait_until(lambda: widget.spyder_kernel_ready)
    return widget


def wait_until(condition: Callable[[], bool], shown: Callable[[], str] = str) -> None:
    """Handles Qt's events until the condition is true; ends this program if it does not become so."""
    give_up = time.monotonic() + 120
    while not condition():
        if time.monotonic() > give_up:
            end(1, f"The console did not go on. It shows:\n{shown()}")
        QApplication.processEvents()
        time.sleep(0.01)


def run_cells(widget: RichJupyterWidget, cells: list[str]) -> str:
    """Runs the cells one after the other, and returns the text of the widget."""
    control: Any = widget._control
    executed: list[object] = []
    widget.executed.connect(executed.append)

    def answer() -> None:
        QTest.keyClicks(control, "y")
        QTest.keyClick(control, Qt.Key_Return)

    widget.kernel_client.stdin_channel.message_received.connect(lambda _: QTimer.singleShot(200, answer))
    wait_until(lambda: "In [" in control.toPlainText(), control.toPlainText)
    for number, cell in enumerate(cells, 1):
        widget.execute(cell)
        wait_until(lambda number=number: len(executed) == number, control.toPlainText)  # type: ignore[misc]
    return str(control.toPlainText())


def end(code: int, text: str) -> NoReturn:
    """Prints the text, and ends this program and all that it started, such as kernels and Spyder's servers.

    It ends at once: Qt's objects have no order in which they could be destroyed.
    """
    sys.__stdout__.write(text)  # Spyder replaces sys.stdout
    sys.__stdout__.flush()
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            process.kill()
    os._exit(code)


def main(kind: str, *cells: str) -> None:
    """Opens the console, runs the cells, and prints what it shows."""
    if kind == "qtconsole":
        app = QApplication(sys.argv[:1])  # noqa: F841  # Qt needs that it stays alive
        widget = open_qtconsole()
    else:
        widget = open_spyder()
    shown = run_cells(widget, list(cells))
    end(0, shown)


if __name__ == "__main__":
    main(*sys.argv[1:])
