"""A picture on another host is a link unless that host is allowed by name."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event
from toolcall_nb.core.transcript import FilePart, Message, Part, ReasoningPart, TextPart, Transcript
from toolcall_nb.errors import UsageError
from toolcall_nb.render import LiveHtml, mime_bundle, to_html
from toolcall_nb.render.html_output.pictures import allowed_hosts, allowed_source

HOST = "pictures.example"
ADDRESS = f"https://{HOST}/a.png?size=1&kind=b"
SOURCES = re.compile(r'<img src="([^"]*)"')


def shown(*parts: Part, images: tuple[str, ...] = (HOST,), page: bool = False) -> str:
    return to_html(Transcript((Message("assistant", parts),)), images=images, page=page)


def sources(html: str) -> list[str]:
    return SOURCES.findall(html)


TEXT = TextPart(f'Look: ![A "map"]({ADDRESS} "Of <Paris>") and more.')
FILE = FilePart(ADDRESS, "image/png")


@pytest.mark.parametrize("part", [TEXT, FILE, ReasoningPart(TEXT.text)], ids=["text", "file", "reasoning"])
def test_a_picture_is_a_link_unless_its_host_is_allowed(part: Part) -> None:
    for images in ((), ("other.example",), (f"www.{HOST}",), (f"{HOST}:8443",)):
        html = shown(part, images=images)
        assert sources(html) == []
        assert 'href="https://pictures.example/a.png?size=1&amp;kind=b"' in html


@pytest.mark.parametrize("part", [TEXT, FILE, ReasoningPart(TEXT.text)], ids=["text", "file", "reasoning"])
def test_a_picture_of_an_allowed_host_is_shown(part: Part) -> None:
    assert sources(shown(part)) == ["https://pictures.example/a.png?size=1&amp;kind=b"]
    assert sources(shown(part, images=("Pictures.Example",))) == sources(shown(part))


def test_the_picture_has_no_referrer_and_its_text_is_the_alternative() -> None:
    (picture,) = re.findall("<img[^>]*>", shown(TEXT))
    assert 'referrerpolicy="no-referrer"' in picture
    assert 'alt="A &quot;map&quot;"' in picture
    assert 'title="Of &lt;Paris&gt;"' in picture
    assert picture.count('"') == 10, "five attributes, and nothing that ends one early"


@pytest.mark.parametrize(
    "address",
    [
        f"http://{HOST}/a.png",
        f"//{HOST}/a.png",
        f"https://user@{HOST}/a.png",
        rf"https://evil.example\@{HOST}/a.png",
        f"https://evil.example/{HOST}",
        f"https://evil.example#{HOST}",
        f"https://{HOST}.evil.example/a.png",
        f"https://{HOST}\t.evil.example/",
        f"ftp://{HOST}/a.png",
        f"https:{HOST}/a.png",
        f"https:///{HOST}/a.png",
    ],
)
def test_an_address_that_browsers_may_read_otherwise_is_refused(address: str) -> None:
    assert allowed_source(address, allowed_hosts([HOST])) is None
    assert sources(shown(FilePart(address, "image/png"), TextPart(f"![x](<{address}>)"))) == []


@given(st.text("htps:/\\@#?.&;%\t examplictu-0[]", max_size=30))
def test_any_address_loads_only_from_that_host(rest: str) -> None:
    for source in sources(shown(FilePart(f"https://{rest}", "image/png"), TextPart(f"![x](https://{rest})"))):
        assert re.match(rf"https://{HOST}(?:[/?#]|\Z)", source)


def test_a_file_of_another_type_is_not_loaded_as_a_picture() -> None:
    assert sources(shown(FilePart(ADDRESS, "text/html"))) == []


def test_text_cannot_write_the_link_that_becomes_a_picture() -> None:
    forged = f'<a href="{ADDRESS}" class="tc-image">x</a>'
    assert sources(shown(TextPart(forged), TextPart(f"```\n{forged}\n```"))) == []


def test_a_picture_in_a_link_stays_text() -> None:
    html = shown(TextPart(f"[![words]({ADDRESS})](https://elsewhere.example)"))
    assert sources(html) == []
    assert ">words</a>" in html


@pytest.mark.parametrize(
    "name", ["https://a.example", "a.example/b", "*", "*.example", "", "a b", "a.example:x", "a'b"]
)
def test_a_bad_host_name_is_refused_with_an_example(name: str) -> None:
    with pytest.raises(UsageError, match=r"example\.org"):
        to_html(Transcript(), images=[name])


def test_an_exported_page_may_load_from_that_host_and_nothing_else() -> None:
    policies = [
        re.search('Security-Policy" content="([^"]*)', shown(TEXT, images=hosts, page=True)) for hosts in ((), (HOST,))
    ]
    without, with_host = (found[1] for found in policies if found)
    assert "img-src data:;" in without
    assert f"img-src data: https://{HOST};" in with_host
    for policy in (without, with_host):
        assert policy.startswith("default-src 'none'; ")
        assert "base-uri 'none'; form-action 'none'" in policy


@given(st.lists(st.integers(1, 60), max_size=8))
def test_live_equals_whole_with_pictures(cuts: list[int]) -> None:
    live = LiveHtml(images=(HOST,))
    text = f"{TEXT.text}\n\n{TEXT.text}\n"
    deltas: list[Event] = []
    for cut in cuts:
        deltas.append(ev.TextDelta("t", text[:cut]))
        text = text[cut:]
    for event in [ev.Start(), ev.TextStart("t"), *deltas, ev.TextDelta("t", text)]:
        live.apply(event)
        assert live.html == to_html(live.transcript, images=(HOST,))
    assert len(sources(live.html)) == 2


def test_a_notebook_saves_pictures_of_allowed_hosts() -> None:
    transcript = Transcript((Message("assistant", (TEXT,)),))
    assert sources(mime_bundle(transcript)["text/html"]) == []
    assert sources(mime_bundle(transcript, images=(HOST,))["text/html"]) == [ADDRESS.replace("&", "&amp;")]
