"""Where the corpora are: test data of public projects, kept beside the repository and never copied into it.

They are found through the environment variable ``TOOLCALL_NB_CORPORA``, or in ``../shared/corpora`` seen from
the repository. The suite stands without them: what needs one is skipped.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

__all__ = ["corpus"]

_BESIDE = Path(__file__).resolve().parents[3] / "shared" / "corpora"


def corpus(name: str) -> Path:
    """The folder of the corpus ``name``; skips the test, or the module that asks while it is read, without corpora.

    Corpora without one of that name are a mistake of the test, and fail.
    """
    root = Path(os.environ.get("TOOLCALL_NB_CORPORA") or _BESIDE)
    if not root.is_dir():
        # The reason does not name the corpus, so that pytest folds all of these into one line.
        pytest.skip("no corpora: set TOOLCALL_NB_CORPORA to the folder that holds them", allow_module_level=True)
    folder = root / name
    if not folder.is_dir():
        raise FileNotFoundError(f"There is no corpus {name!r} in {root}")
    return folder
