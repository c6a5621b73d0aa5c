"""Finds the corpora: test data of public projects, kept beside the repository and never copied into it.

Their folder is ``TOOLCALL_NB_CORPORA``, by default ``../shared/corpora`` relative to the repository. Tests that need
a corpus are skipped if there is none.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

__all__ = ["corpus"]

_BESIDE = Path(__file__).resolve().parents[3] / "shared" / "corpora"


def corpus(name: str) -> Path:
    """Returns the folder of the corpus ``name``; without corpora, skips the test or the module that is being imported.

    Raises `FileNotFoundError` if there are corpora but none has that name.
    """
    root = Path(os.environ.get("TOOLCALL_NB_CORPORA") or _BESIDE)
    if not root.is_dir():
        # The reason does not name the corpus, so that pytest reports all of these skips as one line.
        pytest.skip("no corpora: set TOOLCALL_NB_CORPORA to the folder that holds them", allow_module_level=True)
    folder = root / name
    if not folder.is_dir():
        raise FileNotFoundError(f"There is no corpus {name!r} in {root}")
    return folder
