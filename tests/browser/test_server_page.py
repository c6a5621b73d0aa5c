"""The server's own page in a real browser: live, asked, reloaded in mid-stream, and nothing that its policy forbids."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.servers import Gated, call, settings, words
from toolcall_nb.server.serving import Server


@pytest.fixture
def opened(chromium: Browser) -> Iterator[Callable[..., Any]]:
    """Opens the page of a server of its own; at the end nothing was refused and nothing went wrong in it."""
    problems: list[str] = []

    @contextmanager
    def page_of(model: Any, path: str = "/", **options: Any) -> Iterator[Page]:
        server = Server(settings(model, **options), port=0)
        server.start()
        context = chromium.new_context()
        page = context.new_page()
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("console", lambda said: problems.append(said.text) if said.type == "error" else None)
        page.add_init_script(
            "addEventListener('securitypolicyviolation', e => console.error(`${e.violatedDirective} ${e.blockedURI}`))"
        )
        try:
            page.goto(server.address + path)
            yield page
        finally:
            context.close()
            server.stop()

    yield page_of
    assert problems == []


def send(page: Page, text: str) -> None:
    page.get_by_label("Message").fill(text)
    page.get_by_label("Message").press("Enter")


def test_a_chat_is_live_and_drawn_as_in_a_notebook(opened: Callable[..., Any]) -> None:
    gate = threading.Event()
    model = Gated(
        [*words("Let me **see**."), *call("c", "weather", city="Rome")], [*words("It is"), gate, *words("sunny", "u")]
    )
    with opened(model) as page:
        send(page, "The weather in Rome?")
        expect(page.locator(".tc-user")).to_contain_text("The weather in Rome?")
        expect(page.locator(".tc-text strong")).to_have_text("see")
        expect(page.locator(".tc-call")).to_contain_text("Completed")
        expect(page.get_by_text("It is")).to_be_visible()
        expect(page.get_by_role("button", name="Stop")).to_be_visible()
        expect(page.get_by_role("button", name="Send")).to_be_disabled()
        gate.set()
        expect(page.get_by_text("sunny", exact=True)).to_be_visible()
        expect(page.get_by_role("button", name="Send")).to_be_enabled()
        send(page, "And now?")
        expect(page.locator(".tc-user")).to_have_count(2)
        expect(page.get_by_text("nothing more")).to_be_visible()
        expect(page.locator(".tc-call")).to_have_count(1)


def test_a_question_is_asked_in_its_card_and_answered_there(opened: Callable[..., Any]) -> None:
    model = Gated(call("c", "weather", city="Rome"), words("Done."))
    with opened(model, approve="ask") as page:
        send(page, "Go")
        panel = page.get_by_role("group", name="May weather run?")
        panel.get_by_role("button", name="Edit").click()
        panel.get_by_label("Arguments, as JSON").fill('{"city": "Oslo"}')
        panel.get_by_role("button", name="Run edited").click()
        expect(page.get_by_text("Done.")).to_be_visible()
        expect(panel).to_have_count(0)
        page.locator(".tc-call summary").first.click()
        expect(page.locator(".tc-call")).to_contain_text("sunny in Oslo")


def test_a_page_that_is_reloaded_in_mid_stream_goes_on(opened: Callable[..., Any]) -> None:
    gate = threading.Event()
    model = Gated([*words("Before the reload."), gate, *words("After it.", "u")])
    with opened(model) as page:
        send(page, "Go")
        expect(page.get_by_text("Before the reload.")).to_be_visible()
        page.reload()
        expect(page.get_by_text("Before the reload.")).to_be_visible()
        gate.set()
        expect(page.get_by_text("After it.")).to_be_visible()
        page.reload()
        expect(page.get_by_text("After it.")).to_be_visible()


def test_stop_ends_the_turn(opened: Callable[..., Any]) -> None:
    model = Gated([*words("One"), threading.Event()])
    with opened(model) as page:
        send(page, "Go")
        expect(page.get_by_text("One")).to_be_visible()
        page.get_by_role("button", name="Stop").click()
        expect(page.get_by_role("button", name="Send")).to_be_enabled()
        assert model.closed.wait(30)


def test_a_page_that_was_given_the_token_may_ask(opened: Callable[..., Any]) -> None:
    with opened(Gated(words("Hello.")), "/#token=secret", token="secret") as page:
        send(page, "Hi")
        expect(page.get_by_text("Hello.")).to_be_visible()
        assert "secret" not in page.url


def test_what_a_model_writes_runs_nothing(opened: Callable[..., Any]) -> None:
    text = "<img src=x onerror=alert(1)> <script>alert(1)</script> **Fine**"
    with opened(Gated(words(text))) as page:
        page.on("dialog", lambda dialog: pytest.fail(dialog.message))
        send(page, "Go")
        expect(page.locator(".tc-text strong")).to_have_text("Fine")
