"""Module paths and public names of version 0.1 still work."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

NAMES: dict[str, list[str]] = json.loads(
    (Path(__file__).parents[1] / "fixtures" / "public_names_0_1.json").read_text("utf-8")
)
"""Every module of version 0.1, without the package's name, and its public names."""


@pytest.mark.filterwarnings("ignore:toolcall_nb:DeprecationWarning")
def test_the_modules_of_version_0_1_are_importable_with_their_public_names() -> None:
    for module, names in NAMES.items():
        home = importlib.import_module(f"toolcall_nb.{module}".rstrip("."))
        assert [name for name in names if not hasattr(home, name)] == [], module


def test_an_old_path_leads_to_the_same_object_and_warns() -> None:
    import toolcall_nb.transcript as old  # type: ignore[import-not-found]

    from toolcall_nb.core.transcript import Transcript

    with pytest.warns(DeprecationWarning, match=r"^toolcall_nb\.transcript\.Transcript is now toolcall_nb\.core\."):
        assert old.Transcript is Transcript


def test_an_old_path_has_no_names_that_it_never_had() -> None:
    import toolcall_nb.live as old  # type: ignore[import-not-found]

    with pytest.raises(AttributeError, match=r"module 'toolcall_nb\.live' has no attribute 'nothing'"):
        _ = old.nothing


def test_a_function_works_after_a_former_module_of_its_name_was_imported() -> None:
    import toolcall_nb.live as old

    from toolcall_nb import Transcript

    assert "snapshot" in old(Transcript()).get_state()


def test_a_former_module_without_such_a_function_cannot_be_called() -> None:
    import toolcall_nb.transcript as old

    with pytest.raises(TypeError, match=r"the module 'toolcall_nb\.transcript' is not callable"):
        old()


@pytest.mark.parametrize("statement", ["import toolcall_nb.live.nothing", "import toolcall_nb.nothing"])
def test_an_unknown_path_raises_an_ordinary_import_error(statement: str) -> None:
    done = subprocess.run([sys.executable, "-c", statement], capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1].startswith("ModuleNotFoundError: No module named 'toolcall_nb")
