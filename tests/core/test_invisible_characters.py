"""Characters without a shape of their own are written out wherever a name, an argument or a result shows."""

from __future__ import annotations

import json
import shutil
import subprocess
import unicodedata
from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcall_nb import create_stream_chunks
from toolcall_nb.core import events as ev
from toolcall_nb.core.invisible_characters import (
    escape_invisible,
    escape_invisible_json,
    escape_invisible_markup,
    has_invisible,
)
from toolcall_nb.core.transcript import Message, State, TextPart, ToolCall, Transcript
from toolcall_nb.live_runs.status import RunStatus
from toolcall_nb.render import to_html, to_text

# Written out by hand, apart from the table: each is one that somebody has used to hide something.
INVISIBLE = [
    *"\x00\x08\x0b\x0c\x0d\x1b\x7f\x80\x85\x9b",  # controls
    *"\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b\u180e\u200b\u200c\u200d\u200e\u200f",
    *"\u2028\u2029\u202a\u202e\u2060\u2061\u2064\u2065\u2066\u2069\u206f\u3164\ufe00\ufe0e\ufe0f\ufeff\uffa0\ufff0",
    *"\ufff9\ufffb\U0001bca0\U0001d173\U000e0000\U000e0001\U000e0041\U000e007f\U000e0100\U000e01ef\U000e0fff",
    *"\xa0\u1680\u2000\u2003\u200a\u202f\u205f\u3000",  # spaces of another kind
    *"\u2800\ufffc\U0001d159\U00016fe4\u2d7f",  # blank letters, marks and symbols
    *"\ue000\uf8ff\U000f0000\U0010fffd",  # private use
    *"\u0378\ufffe\uffff\U0001fffe",  # unassigned, and no characters
    "\ud800",
]
SHOWN = [
    *"a Z~é漢かㄱ가שไ€→─█ⅷ²①\ufffd",
    "e\u0301",
    "א\u05b0",
    "שָׁ֑",
    "tab\tand\nline",
    "❤️",
    "⚠️!",
    "1️⃣",
    "👩‍💻",
    "🏳️‍🌈",
    "👨‍👩‍👧‍👦",
    "👍🏽",
    "🇫🇷",
    "\U0001fae8",  # of Unicode 15: newer than some Pythons
]


@pytest.mark.parametrize("character", INVISIBLE, ids=lambda character: f"U+{ord(character):04X}")
def test_an_invisible_character_is_escaped(character: str) -> None:
    code = f"<U+{ord(character):04X}>"
    assert escape_invisible(f"a{character}b") == f"a{code}b"
    assert escape_invisible(f"a{character * 1234}b") == f"a<U+{ord(character):04X} x1,234>b"
    assert has_invisible(character)
    assert json.loads(escape_invisible_json(json.dumps(character, ensure_ascii=False))) == character
    assert character not in escape_invisible_json(f'"{character}"')


@pytest.mark.parametrize("text", SHOWN)
def test_visible_characters_are_not_escaped(text: str) -> None:
    assert escape_invisible(text) == text == escape_invisible_markup(text)
    assert escape_invisible_json(text) == text
    assert not has_invisible(text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("❤\ufe0f\ufe0f", "❤\ufe0f<U+FE0F>"),
        ("a\ufe0f", "a<U+FE0F>"),
        ("a\u200db", "a<U+200D>b"),
        ("👩\u200d", "👩<U+200D>"),
        ("👩\u200d\u200d💻", "👩<U+200D x2>💻"),
        ("1\ufe0f", "1<U+FE0F>"),
        ("🏴\U000e0067\U000e007f", "🏴<U+E0067><U+E007F>"),
        ("葛\U000e0100", "葛<U+E0100>"),
    ],
)
def test_only_the_drawn_characters_of_an_emoji_sequence_stay(text: str, shown: str) -> None:
    assert escape_invisible(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\u0338x", "<U+0338>x"),
        ("a \u0301", "a <U+0301>"),
        ("=\u0338", "=<U+0338>"),
        ("\u200b\u0301", "<U+200B><U+0301>"),
        ("Z" + "\u0301" * 100, "Z" + "\u0301" * 4 + "<U+0301 x96>"),
        ("Z" + "\u0301\u0302" * 3, "Z" + "\u0301\u0302" * 2 + "<U+0301><U+0302>"),
    ],
)
def test_a_mark_without_a_base_and_a_high_stack_of_marks_are_escaped(text: str, shown: str) -> None:
    assert escape_invisible(text) == shown


@given(st.text(), st.text())
def test_different_texts_are_escaped_differently(one: str, other: str) -> None:
    for text in (one, other, escape_invisible(one)):
        assert (escape_invisible(text) == escape_invisible(one)) == (text == one)


@pytest.mark.parametrize("typed", ["<U+200B>", "<U+200B x3>", "<U+E0041>"])
def test_text_that_looks_like_an_escape_is_escaped_itself(typed: str) -> None:
    assert escape_invisible(typed) == typed.replace("<", "<U+003C>")
    assert f'<span class="u">&lt;U+003C&gt;</span>{typed[1:-1]}&gt;' in to_html(called(input={"a": typed}))


def test_the_table_has_every_default_ignorable_character_of_unicode() -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("Node knows Default_Ignorable_Code_Point, and is not here")
    script = (
        "const found = []; for (let c = 0; c < 0x110000; c++) "
        "if (/\\p{Default_Ignorable_Code_Point}/u.test(String.fromCodePoint(c))) found.push(c);"
        "console.log(JSON.stringify(found))"
    )
    found = json.loads(subprocess.run([node, "-e", script], capture_output=True, check=True, text=True).stdout)
    assert len(found) > 4_000
    assert [hex(code) for code in found if not has_invisible(f"a{chr(code)}")] == []


def test_the_table_has_every_format_character_and_every_space_but_the_one() -> None:
    kinds = ("Cf", "Zs", "Zl", "Zp", "Co", "Cs")
    missing = [hex(c) for c in range(0x110000) if unicodedata.category(chr(c)) in kinds and not has_invisible(chr(c))]
    assert missing == ["0x20"]


# Wherever it shows


def called(**fields: object) -> Transcript:
    given = {"id": "c", "name": "show", "state": State.OUTPUT_AVAILABLE, "input": {}, "output": "done", **fields}
    return Transcript((Message("assistant", (ToolCall(**given),)),))  # type: ignore[arg-type]  # fields of a call


@pytest.mark.sampled(4)
@pytest.mark.parametrize("character", ["\u202e", "\u200b", "\u3164", "\u2800", "\ufe01", "\U000e0041", "\xa0", "\x85"])
@pytest.mark.parametrize(
    "place",
    [
        "name",
        "title",
        "key",
        "argument",
        "lines",
        "nested",
        "result",
        "data",
        "cell",
        "html",
        "markdown",
        "log",
        "error",
    ],
)
def test_it_is_escaped_wherever_a_name_an_argument_or_a_result_is_shown(place: str, character: str) -> None:
    text = f"exe{character}gnp"
    fields: dict[str, dict[str, object]] = {
        "name": {"name": text},
        "title": {"title": text},
        "key": {"input": {text: 1}},
        "argument": {"input": {"a": text}},
        "lines": {"input": {"a": f"one\n{text}\ntwo"}},
        "nested": {"input": {"a": [{"b": [text]}]}},
        "result": {"output": text},
        "data": {"output": {"a": text}},
        "cell": {"output": [{"a": text}, {"a": "b"}]},
        "html": {"display": {"text/html": f"<b>{text}</b>"}},
        "markdown": {"display": {"text/markdown": f"**{text}**"}},
        "log": {"log": f"{text}\n"},
        "error": {"state": State.OUTPUT_ERROR, "error": text},
    }
    transcript = called(**fields[place])
    is_layout = place in ("html", "markdown") and character == "\xa0"
    for shown in (unescape(to_html(transcript)), *([] if place in ("html", "markdown") else [to_text(transcript)])):
        assert (character in shown) == is_layout
        assert is_layout or f"U+{ord(character):04X}" in shown
    assert Transcript.from_markdown(transcript.to_markdown()).messages[0].parts == transcript.messages[0].parts


def test_prose_keeps_its_emoji_and_its_spaces() -> None:
    prose = "Voilà\xa0! ❤️ 👩‍💻 🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f \u0645\u06cc\u200c\u062e"
    transcript = Transcript((Message("assistant", (TextPart(prose),)),))
    assert prose in to_html(transcript)
    assert prose in to_text(transcript)


def test_announcements_and_the_footer_escape_the_name() -> None:
    progress = RunStatus()
    assert progress.apply(ev.ToolInputStart("c", "read\u202e\u3164")) == ["Tool read<U+202E><U+3164> called"]
    assert "<U+202E>" in progress.text


def test_the_data_are_not_escaped() -> None:
    markdown = '> [!tool c "show"]\n> input:\n>   a: "\u3164\u200b"\n'
    (available,) = [chunk for chunk in create_stream_chunks(markdown) if chunk["type"] == "tool-input-available"]
    assert available["input"] == {"a": "\u3164\u200b"}
