"""Markdown in real marimo, whose style sheet takes marks, sizes and margins from all elements of its page."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.marimo_pages import marimo, opened, programs
from toolcall_nb.core.transcript import Transcript
from toolcall_nb.render import to_html

__all__ = ["marimo", "programs"]

_NOTEBOOK = """
import marimo

app = marimo.App()


@app.cell
def _():
    from pathlib import Path
    from toolcall_nb import Transcript, live

    transcript = Transcript.from_markdown(Path("sample.md").read_text())
    return live, transcript


@app.cell
def _(transcript):
    transcript
    return


@app.cell
def _(live, transcript):
    live(transcript)
    return


if __name__ == "__main__":
    app.run()
"""
_PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
_SAMPLE = f"""# One

## Two

### Three

Some **bold**, *italic*, ~~struck~~, `code`, [a link](https://example.org) and $x^2$.

- one
  - inner
    - innermost
      1. first
- [x] done

1. first
   - with a bullet
     - deeper
   1. and a number

> A quote

| a | b |
|---|--:|
| 1 | 2 |

```python
def f():
    return 1
```

---

![A picture](data:image/png;base64,{_PIXEL}) in a line

$$y = 2$$
"""
_LOOK = """tc => {
    const sides = ["top", "right", "bottom", "left"];
    const boxes = sides.flatMap(side => [`margin-${side}`, `padding-${side}`, `border-${side}-width`]);
    const names = ["display", "list-style-type", "font-size", "font-weight", "font-style", "text-decoration-line",
        "text-align", "vertical-align", "white-space", "line-height", "background-color", ...boxes];
    const elements = [...tc.querySelectorAll(".tc-text *")].filter(each => !each.closest("math, input, .tc-math"));
    return elements.map(each => {
        const style = getComputedStyle(each);
        return [each.tagName, ...names.map(name => `${name}: ${style.getPropertyValue(name)}`)];
    });
}"""
"""What the style says of each element of Markdown."""


@pytest.mark.thorough
def test_markdown_looks_in_marimo_as_in_a_page_of_its_own(
    chromium: Browser,
    programs: Path,
    tmp_path: Path,
) -> None:
    (tmp_path / "sample.md").write_text(_SAMPLE)
    page = chromium.new_page()
    page.set_content(to_html(Transcript.from_markdown(_SAMPLE), page=True))
    expected = page.locator(".tc").evaluate(_LOOK)
    page.close()
    with marimo(programs, tmp_path, _NOTEBOOK) as address, opened(chromium, address) as page:
        transcripts = page.locator(".tc:has(h1)")
        expect(transcripts).to_have_count(2)
        for number in range(2):
            assert transcripts.nth(number).evaluate(_LOOK) == expected
            for formula in ("x^2", "y = 2"):
                expect(transcripts.nth(number).locator(".tc-tex", has_text=formula)).to_be_visible()
