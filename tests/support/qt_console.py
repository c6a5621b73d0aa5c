"""Runs cells in a real qtconsole without a screen, and prints what it shows; runs in an environment that has it.

Its arguments are the cells. A question is answered with "y".
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from qtconsole.manager import QtKernelManager
from qtconsole.rich_jupyter_widget import RichJupyterWidget
from qtpy.QtCore import QTimer
from qtpy.QtWidgets import QApplication

app = QApplication(sys.argv[:1])
manager = QtKernelManager(kernel_name="python3")
manager.start_kernel()
client = manager.client()
client.start_channels()
widget = RichJupyterWidget()
widget.kernel_manager, widget.kernel_client = manager, client
widget.show()


def wait_until(condition: Callable[[], bool]) -> None:
    give_up = time.monotonic() + 60
    while not condition():
        if time.monotonic() > give_up:
            sys.exit(f"qtconsole did not go on. It shows:\n{widget._control.toPlainText()}")
        app.processEvents()
        time.sleep(0.01)


executed: list[object] = []
widget.executed.connect(executed.append)
client.stdin_channel.message_received.connect(lambda _: QTimer.singleShot(200, lambda: client.input("y")))
wait_until(lambda: "In [" in widget._control.toPlainText())
for number, cell in enumerate(sys.argv[1:], 1):
    widget.execute(cell)
    wait_until(lambda number=number: len(executed) == number)  # type: ignore[misc]  # bound at once
print(widget._control.toPlainText())
client.stop_channels()
manager.shutdown_kernel(now=True)
