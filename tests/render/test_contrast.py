"""Colours: text has the contrast that WCAG 2.2 requires at level AA (4.5 to 1), in every theme.

The colours are computed from the style sheet itself, as a browser would: its custom properties with the host's
variables put in, `light-dark()` for one of the schemes, `color-mix()` in sRGB.
"""

from __future__ import annotations

import re

import pytest

from tests.support.colour_contrast import CSS, HOSTS, Color, color, contrast, mixed

TEXT = ["fg", "dim", "run", "ok", "bad", "ask", "key", "string", "number", "word", "call"]


@pytest.mark.parametrize("ground", ["bg", "soft"])
@pytest.mark.parametrize("token", TEXT)
@pytest.mark.parametrize("host", HOSTS)
def test_text_has_enough_contrast(host: str, token: str, ground: str) -> None:
    scheme, variables = HOSTS[host]
    page = color("var(--tc-bg)", scheme, variables)
    behind = color(f"var(--tc-{ground})", scheme, variables).over(page)
    assert contrast(color(f"var(--tc-{token})", scheme, variables).over(behind), behind) >= 4.5


def test_every_colour_in_the_style_sheet_is_a_variable() -> None:
    rules = re.sub(r"--tc-[a-z]+:[^;]+;", "", re.sub(r"/\*.*?\*/", "", CSS, flags=re.DOTALL))
    assert re.findall(r"#[0-9a-f]{3,8}\b|\brgba?\(|\bhsla?\(", rules) == []


def test_every_text_colour_is_checked() -> None:
    used = set(re.findall(r"(?<![-\w])color:\s*([^;}]+)", re.sub(r"/\*.*?\*/", "", CSS, flags=re.DOTALL)))
    tones = set(re.findall(r"--tc-tone:\s*([^;}]+)", CSS))
    assert used | tones <= {
        "inherit",
        "var(--tc-tone)",
        "var(--tc-tone, var(--tc-dim))",
        *(f"var(--tc-{token})" for token in TEXT),
    }


def test_the_contrast_formula_is_that_of_wcag() -> None:
    assert round(contrast(Color(0, 0, 0), Color(1, 1, 1)), 1) == 21.0
    assert round(contrast(color("#767676", "light", {}), Color(1, 1, 1)), 2) == 4.54
    assert mixed(Color(0, 0, 0, 0.5), Color(1, 1, 1), 0.5) == Color(2 / 3, 2 / 3, 2 / 3, 0.75)
