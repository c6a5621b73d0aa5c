"""Executes the notebooks and stores their outputs: ``./dev notebooks``.

The same code always stores the same outputs, without execution times and the version of Python.
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
    """Reads a stored notebook."""
    notebook: NotebookNode = nbformat.read(path, as_version=4)
    return notebook


def executed(path: Path) -> NotebookNode:
    """Executes all cells of the notebook, in its own folder, and returns the result."""
    notebook = read(path)
    client = NotebookClient(
        notebook,
        timeout=120,
        kernel_name="python3",
        record_timing=False,
        coalesce_streams=True,  # how printed text is split into messages depends on timing
        resources={"metadata": {"path": str(path.parent)}},
    )
    client.execute()
    notebook.metadata = nbformat.from_dict(_METADATA)
    return notebook


if __name__ == "__main__":
    for stored in NOTEBOOKS:
        nbformat.write(executed(stored), stored)
        print(f"{stored.name}: executed and stored")
