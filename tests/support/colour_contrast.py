"""The colours of style sheets, and their contrast."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import NamedTuple

CSS = files("toolcall_nb.render").joinpath("style.css").read_text("utf-8")


TOKENS = dict(re.findall(r"(--tc-[a-z]+):\s*([^;]+);", CSS[CSS.index(".tc.tc {") : CSS.index("contain: content")]))


HOSTS = {
    "JupyterLab light": ("light", {"--jp-layout-color0": "#fff", "--jp-content-font-color1": "rgba(0,0,0,.87)"}),
    "JupyterLab dark": ("dark", {"--jp-layout-color0": "#111", "--jp-content-font-color1": "#fff"}),
    "VS Code light": ("light", {"--vscode-editor-background": "#ffffff", "--vscode-editor-foreground": "#3b3b3b"}),
    "VS Code dark": ("dark", {"--vscode-editor-background": "#1f1f1f", "--vscode-editor-foreground": "#cccccc"}),
    "VS Code high contrast": ("dark", {"--vscode-editor-background": "#000", "--vscode-editor-foreground": "#fff"}),
    "a light page": ("light", {}),
    "a dark page": ("dark", {}),
}


class Color(NamedTuple):
    red: float
    green: float
    blue: float
    alpha: float = 1.0

    def over(self, ground: Color) -> Color:
        return mixed(self._replace(alpha=1.0), ground, self.alpha)

    @property
    def luminance(self) -> float:
        """Relative luminance as WCAG defines it."""
        red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in self[:3])
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def arguments(text: str) -> list[str]:
    """What stands between the parentheses of a function, parted at its own commas."""
    depth, pieces = 0, [""]
    for character in text[text.index("(") + 1 : -1]:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and depth == 0:
            pieces.append("")
        else:
            pieces[-1] += character
    return [piece.strip() for piece in pieces]


_SYSTEM = {"Canvas": ("#fff", "#121212"), "CanvasText": ("#000", "#fff")}
"""The system's colours, light and dark, as Chromium has them."""


def color(text: str, scheme: str, host: dict[str, str]) -> Color:
    text = text.strip()
    if text.startswith("var("):
        name, *rest = arguments(text)
        value = host.get(name) or TOKENS.get(name) or rest[0]
        return color(value, scheme, host)
    if text in _SYSTEM:
        text = _SYSTEM[text][scheme == "dark"]
    if text.startswith("light-dark("):
        return color(arguments(text)[scheme == "dark"], scheme, host)
    if text.startswith("color-mix("):
        _, first, second = arguments(text)
        one, share = first.rsplit(" ", 1)
        return mixed(color(one, scheme, host), color(second, scheme, host), float(share.rstrip("%")) / 100)
    if text.startswith("rgba("):
        red, green, blue, alpha = map(float, arguments(text))
        return Color(red / 255, green / 255, blue / 255, alpha)
    digits = text.removeprefix("#")
    digits = "".join(2 * digit for digit in digits) if len(digits) == 3 else digits
    red, green, blue = (int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4))
    return Color(red, green, blue)


def mixed(one: Color, other: Color, share: float) -> Color:
    alpha = share * one.alpha + (1 - share) * other.alpha
    parts = zip(one[:3], other[:3], strict=True)
    red, green, blue = ((share * a * one.alpha + (1 - share) * b * other.alpha) / alpha for a, b in parts)
    return Color(red, green, blue, alpha)


def contrast(one: Color, other: Color) -> float:
    bright, dark = sorted((one.luminance, other.luminance), reverse=True)
    return (bright + 0.05) / (dark + 0.05)
