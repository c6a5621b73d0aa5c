"""Execute the notebooks and store what they show: ``./dev notebooks``.

What is stored is the same each time for the same code: no execution times, no version of the Python that ran.
"""

from __future__ import annotations

from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode

__all__ = ["NOTEBOOKS", "executed", "read"]

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "notebooks").glob("*.ipynb"))

_METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def read(path: Path) -> NotebookNode:
    """The notebook as it is stored."""
    notebook: NotebookNode = nbformat.read(path, as_version=4)
    return notebook


def executed(path: Path) -> NotebookNode:
    """The notebook as a run from its first cell to its last leaves it, in the folder where it is."""
    notebook = read(path)
    client = NotebookClient(
        notebook,
        timeout=120,
        kernel_name="python3",
        record_timing=False,
        coalesce_streams=True,  # when the kernel sends what is printed is a matter of time
        resources={"metadata": {"path": str(path.parent)}},
    )
    client.execute()
    notebook.metadata = nbformat.from_dict(_METADATA)
    return notebook


if __name__ == "__main__":
    for stored in NOTEBOOKS:
        nbformat.write(executed(stored), stored)
        print(f"{stored.name}: executed and stored")
