"""Docstrings: what of them reaches the model, and where."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from toolcall_nb.tools import as_tool
from toolcall_nb.tools.schemas.docstrings import read_docstring


def google(a: int, b: str = "x") -> None:
    """Summary line.

    Longer text.

    Args:
        a: The a.
            More of a.
        b: The b.

    Returns:
        The number.

    Raises:
        ValueError: If a is negative. Call look first.

    Note:
        Costs money.

    Warning:
        Deletes things.

    Example:
        look(1)

    Text after the arguments.
    """


def numpy(a: int, b: str = "x") -> None:
    """Summary line.

    Longer text.

    Parameters
    ----------
    a : int
        The a.
    b : str, optional
        The b.

    Returns
    -------
    int
        The number.

    Raises
    ------
    ValueError
        If a is negative.

    Warns
    -----
    UserWarning
        Sometimes.

    Notes
    -----
    Costs money.

    Warnings
    --------
    Deletes things.

    See Also
    --------
    look : Looks.

    Examples
    --------
    >>> look(1)
    """


def sphinx(a: int, b: str = "x") -> None:
    """Summary line.

    Longer text.

    :param a: The a.
    :param b: The b.
    :type b: str
    :returns: The number.
    :raises ValueError: If a is negative.

    .. note:: Costs money.

    .. warning::
        Deletes things.

    Text after the arguments.
    """


def epydoc(a: int, b: str = "x") -> None:
    """Summary line.

    @param a: The a.
    @raise ValueError: If a is negative.
    @note: Costs money.

    Text after the arguments.
    """


STYLES = [google, numpy, sphinx, epydoc]


@pytest.mark.parametrize("function", STYLES)
def test_notes_warnings_and_raised_errors_reach_the_model(function: Callable[..., None]) -> None:
    description = as_tool(function).description
    assert description.startswith("Summary line.")
    assert "ValueError" in description
    assert "If a is negative." in description
    assert "Costs money." in description
    assert function is epydoc or "Deletes things." in description


@pytest.mark.parametrize("function", [google, sphinx, epydoc])
def test_text_after_the_arguments_reaches_the_model(function: Callable[..., None]) -> None:
    assert as_tool(function).description.endswith("Text after the arguments.")


@pytest.mark.parametrize("function", STYLES)
def test_parameters_are_described_in_the_schema_alone(function: Callable[..., None]) -> None:
    made = as_tool(function)
    described = [made.parameters["properties"][name].get("description", "").partition(".")[0] for name in "ab"]
    assert described == ["The a", "" if function is epydoc else "The b"]
    assert "The a." not in made.description


@pytest.mark.parametrize("function", STYLES)
def test_return_values_examples_and_references_are_left_out(function: Callable[..., None]) -> None:
    description = as_tool(function).description
    assert not any(word in description for word in ("The number.", "look(1)", "look :", "Returns", "Examples"))


def test_text_after_the_parameters_of_numpy_style_is_no_parameter() -> None:
    def look(a: int) -> None:
        """Looks.

        Parameters
        ----------
        a : int
            The a.

        Call it once only.
        """

    assert read_docstring(look) == ("Looks.\n\nCall it once only.", {"a": "The a."})


@pytest.mark.parametrize(
    "text",
    [
        "Looks.",
        "Looks.\n\nNote: call it once.\n\n- one\n- two",
        "Runs a query:\n\n    SELECT 1\n\nThe result is a table.",
        "Looks at :attr:`x`.\n\n:meth:`look` is slow.",
        "A\n---\nB",
        "Args:",
        ":",
        "@",
    ],
)
def test_a_text_without_sections_is_the_description_as_it_is(text: str) -> None:
    def look() -> None: ...

    look.__doc__ = text
    assert read_docstring(look) == (text, {})
