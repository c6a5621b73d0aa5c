"""Who decides about a call in a notebook: how a page is asked, what its answer means, what happens without one."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given

from tests.support.kernels import Kernel, Messages, running_kernel
from tests.support.strategies import json_values
from toolcall_nb.approvals import Decision
from toolcall_nb.approvals.page import ApprovalForm, PendingApprovals, editable_json
from toolcall_nb.core import events as ev
from toolcall_nb.core.events import MISSING
from toolcall_nb.core.invisible_characters import has_invisible
from toolcall_nb.core.json_text import from_extended
from toolcall_nb.core.transcript import Approval, State, ToolCall
from toolcall_nb.render import LiveHtml
from toolcall_nb.runs.document import LiveDocument

# The text that a person reads


@given(value=json_values())
def test_the_text_is_the_whole_value_and_every_character_of_it_can_be_seen(value: Any) -> None:
    text = editable_json(value)
    assert json.dumps(from_extended(json.loads(text))) == json.dumps(value)
    assert not has_invisible(text)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("ab\u202egnp.exe", '"ab\\u202egnp.exe"'),
        ("\u200b\ufeff\x7f\x00\u2028", '"\\u200b\\ufeff\\u007f\\u0000\\u2028"'),
        ("\U000e0041", '"\\udb40\\udc41"'),
        ("Zoë 😀 漢字", '"Zoë 😀 漢字"'),
        ({"n": 9007199254740993}, '{\n  "n": 9007199254740993\n}'),
    ],
)
def test_what_has_no_look_or_turns_the_line_around_is_written_as_an_escape(value: Any, text: str) -> None:
    assert editable_json(value) == text


# Questions and answers


class Person:
    """Asks in a thread, and answers here."""

    def __init__(self, arguments: Any = MISSING) -> None:
        self.forms: list[ApprovalForm | None] = []
        self.is_stopped = False
        self.result: list[Decision | BaseException] = []
        self.questions = PendingApprovals(self._show)
        approval = Approval(id="approval-1")
        state = State.APPROVAL_REQUESTED
        self.call = ToolCall(id="c", name="keep", state=state, input=arguments, approval=approval)
        self._thread = threading.Thread(target=self._ask)
        self._thread.start()
        while not self.forms:
            time.sleep(0.001)

    def _show(self, _call: str, form: ApprovalForm | None) -> bool:
        self.forms.append(form)
        return True

    def _ask(self) -> None:
        try:
            self.result.append(self.questions.ask(self.call, lambda: self.is_stopped))
        except BaseException as error:
            self.result.append(error)

    def says(self, **message: Any) -> None:
        form = self.forms[-1] or {}
        self.questions.answer({"type": "answer", "approval": "approval-1", "seen": form.get("lines"), **message})

    @property
    def text(self) -> str:
        form = self.forms[-1]
        assert form is not None
        text: str = form["text"]
        return text

    def decision(self) -> Decision | BaseException:
        self._thread.join(10)
        (result,) = self.result
        assert self.forms[-1] is None  # the page asks no more, however it ended
        return result


@given(arguments=json_values())
def test_the_text_that_was_shown_is_an_approval_of_the_very_values(arguments: Any) -> None:
    person = Person(arguments)
    person.says(approved=True, text=person.text, scope="chat")
    assert person.decision() == Decision(True, scope="chat")


@pytest.mark.parametrize(("value", "invisible"), [("plain 漢字", None), ("exe\u202egnp", True), ("a\u200bb", True)])
def test_a_page_is_told_where_characters_are_written_out(value: str, invisible: bool | None) -> None:
    person = Person({"name": value})
    form = person.forms[-1]
    assert form is not None
    assert form.get("invisible") is invisible
    person.says(approved=False)
    person.decision()


def test_a_call_without_arguments_is_shown_as_an_empty_object() -> None:
    person = Person()
    person.says(approved=True, text="{}", scope="once")
    assert person.decision() == Decision(True)


@pytest.mark.parametrize("text", ['{"a": 1, "b": [1.0]}', '{"a":1,\n"b":[1.0]}'])
def test_other_spaces_are_no_edit(text: str) -> None:
    person = Person({"a": 1, "b": [1.0]})
    person.says(approved=True, text=text, scope="once")
    assert person.decision() == Decision(True)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1.0}', {"a": 1.0}),
        ('{"a": true}', {"a": True}),
        ('{"a": 9007199254740993}', {"a": 9007199254740993}),
        ("{}", {}),
        ('{"b": 2, "a": 1}', {"b": 2, "a": 1}),
    ],
)
def test_another_text_is_an_edit_and_runs_exactly(text: str, value: Any) -> None:
    person = Person({"a": 1, "b": 2} if "b" in text else {"a": 1})
    person.says(approved=True, text=text, scope="once")
    decision = person.decision()
    assert isinstance(decision, Decision)
    assert (decision.approved, json.dumps(decision.input)) == (True, json.dumps(value))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "This is not JSON: Expecting value in line 1, column 1."),
        ('{"a": 1', "This is not JSON: Expecting ',' delimiter in line 1, column 8."),
        ("[1]", "Arguments are a JSON object: { … }."),
        ('{"a": 1, "a": 2}', "The name 'a' is there twice."),
        ('{"deep": [{"a": 1, "a": 1}]}', "The name 'a' is there twice."),
        ('{"a": NaN}', "NaN is not JSON."),
        ('{"a": "\\ud800"}', "These arguments hold half a character"),
        ('{"a": ' + "[" * 70 + "]" * 70 + "}", "nested deeper than 64 levels."),
        ('{"a": ' + "[" * 100_000 + "]" * 100_000 + "}", "These arguments are nested too deep."),
        ('{"a": ' + "1" * 5000 + "}", "A number has 5,000 digits"),
        (None, "The arguments did not arrive."),
        (17, "The arguments did not arrive."),
        ('{"a": "' + "x" * 5_000_000 + '"}', "These arguments have 5,000,009 characters"),
    ],
)
def test_an_edit_that_is_none_is_refused_with_what_is_wrong_and_the_question_stays(text: Any, problem: str) -> None:
    person = Person({"a": 1})
    for number in (1, 2):
        person.says(approved=True, text=text, scope="once")
        form = person.forms[-1]
        assert form is not None
        assert problem in form["problem"]
        assert form["refused"] == number
    person.says(approved=True, text=person.text, scope="once")
    assert person.decision() == Decision(True)


LONG = {"command": "ls\n" * 200 + "rm -rf ~"}


@pytest.mark.parametrize("text", [None, '{"command": "ls"}'], ids=["as asked", "edited"])
@pytest.mark.parametrize(
    ("answer", "missing"),
    [
        ({"seen": None}, "202 lines"),
        ({"seen": 0}, "202 lines"),
        ({"seen": 201}, "1 line"),
        ({"seen": -7}, "202 lines"),
        ({"seen": "202"}, "202 lines"),
        ({"seen": True}, "202 lines"),
        ({"seen": 202.0}, "202 lines"),
        ({"seen": 1, "unread": "true"}, "201 lines"),
        ({"seen": 1, "unread": 1}, "201 lines"),
    ],
)
@pytest.mark.parametrize("scope", ["once", "chat", "always"])
def test_the_kernel_refuses_an_approval_of_what_was_not_in_view(
    scope: str, answer: Any, missing: str, text: str | None
) -> None:
    person = Person(LONG)
    person.says(approved=True, text=text or person.text, scope=scope, **answer)
    form = person.forms[-1]
    assert form is not None
    assert form["problem"].startswith(f"Not all of the arguments were in view: {missing}.")
    assert person.result == []
    person.says(approved=True, text=text or person.text, scope=scope)
    decision = person.decision()
    assert isinstance(decision, Decision)
    assert (decision.approved, decision.reason, decision.scope) == (True, None, scope)


def test_an_approval_without_reading_all_of_it_is_written_down_as_one() -> None:
    person = Person(LONG)
    person.says(approved=True, text=person.text, scope="once", seen=3, unread=True)
    assert person.decision() == Decision(True, "Approved without reading all of it.")


def test_what_a_card_cannot_show_at_all_is_never_read() -> None:
    person = Person({"items": [*range(20_000)], "command": "rm -rf ~"})
    form = person.forms[-1]
    assert form is not None
    assert form["hidden"] == "3 more lines, 15,000 more items"
    person.says(approved=True, text=person.text, scope="once", seen=10**9)
    refused = person.forms[-1]
    assert refused is not None
    assert form["hidden"] in refused["problem"]
    person.says(approved=True, text=person.text, scope="once", seen=10**9, unread=True)
    assert person.decision() == Decision(True, "Approved without reading all of it.")


@given(value=json_values())
def test_the_card_has_as_many_lines_as_the_question_says(value: Any) -> None:
    html = LiveHtml()
    arguments = {"a": value}
    for event in (ev.Start(), ev.ToolInputAvailable("c", "keep", arguments), ev.ToolApprovalRequest("a", "c")):
        html.apply(event)
    lines = [patch for patch in html.snapshot() if patch[0] == "insert" and patch[2] == "m0.p0.i"]
    person = Person(arguments)
    form = person.forms[-1]
    assert form is not None
    assert form["lines"] == len(lines) > 0
    person.says(approved=False)
    person.decision()


@pytest.mark.parametrize(("reason", "kept"), [("  not now ", "not now"), ("", None), (None, None), (3, None)])
def test_a_denial_may_have_a_reason(reason: Any, kept: str | None) -> None:
    person = Person()
    person.says(approved=False, reason=reason)
    assert person.decision() == Decision(False, kept)


def test_only_the_first_answer_to_what_is_asked_counts() -> None:
    person = Person({"a": 1})
    person.questions.answer({"approved": True, "approval": "approval-2", "text": person.text, "scope": "once"})
    person.questions.answer({"approved": True})
    person.says(approved=True, text=person.text, scope="for ever")
    assert person.result == []
    person.says(approved=False, reason="no")
    person.says(approved=True, text=editable_json({"a": 1}), scope="once")
    assert person.decision() == Decision(False, "no")
    person.says(approved=True, text=editable_json({"a": 1}), scope="once")


@pytest.mark.parametrize("approved", ["true", 1, None, {}])
def test_nothing_but_true_is_an_approval(approved: Any) -> None:
    person = Person({"a": 1})
    person.says(approved=approved, text=person.text, scope="once")
    assert person.decision() == Decision(False)


def test_what_no_page_can_show_is_denied_and_not_waited_for() -> None:
    document = LiveDocument(LiveHtml(), lambda _: None)
    decision = PendingApprovals(document.ask).ask(ToolCall(id="c", name="keep"), lambda: False)
    assert decision == Decision(False, "The question could not be shown, so the call was denied.")


def test_a_run_that_is_stopped_waits_no_longer() -> None:
    person = Person()
    person.is_stopped = True
    assert isinstance(person.decision(), KeyboardInterrupt)


def test_a_page_is_told_what_is_asked_with_the_next_step_and_in_the_state_until_it_is_not() -> None:
    steps: list[dict[str, Any]] = []
    document = LiveDocument(LiveHtml(), steps.append)
    for event in (ev.Start(), ev.ToolInputAvailable("c", "keep", {}), ev.ToolApprovalRequest("a", "c")):
        document.apply(event)
    form = {"approval": "a", "name": "keep", "text": "{}", "lines": 0}
    document.ask("nothing", form)
    document.ask("c", form)
    assert steps[-1]["asks"] == document.state()["asks"] == {"m0.p0": form}
    document.ask("c", None)
    assert steps[-1]["asks"] == document.state()["asks"] == {}
    document.ask("c", form)
    document.finish("mock")
    document.flush()
    assert steps[-1]["asks"] == document.state()["asks"] == {}


# In a kernel

SETUP = """%load_ext toolcall_nb
from toolcall_nb import tool, events as ev

got = []

@tool
def keep(value: int) -> str:
    got.append(value)
    return "kept"

class Caller:
    def stream(self, messages, tools):
        if messages[-1].role == "user":
            said = sum(len(message.calls) for message in messages)
            yield ev.ToolInputAvailable(f"call_{said + 1}", "keep", {"value": 1})

caller = Caller()"""
ASK = "%%toolchat --model caller --new --approve ask {}\nKeep it."


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    with running_kernel(tmp_path_factory.mktemp("kernel")) as kernel:
        kernel.run(SETUP)
        yield kernel


def asked(message: dict[str, Any]) -> ApprovalForm | None:
    """What this message asks a page to ask."""
    content = message["content"].get("data", {}).get("content", {}) if message["msg_type"] == "comm_msg" else {}
    forms: list[ApprovalForm] = list(content.get("asks", {}).values())
    return forms[0] if forms else None


class Page:
    """Answers what it is asked."""

    def __init__(self, kernel: Kernel, *, subshell: str | None = None, **answer: Any) -> None:
        self.kernel, self.subshell, self.answer = kernel, subshell, answer

    def __call__(self, message: dict[str, Any]) -> None:
        form = asked(message)
        if form is not None:
            answer = {"type": "answer", "approval": form["approval"], "text": form["text"], "scope": "once"}
            answer |= {"seen": form["lines"]}
            self.kernel.post(message["content"]["comm_id"], answer | self.answer, self.subshell)


def printed(messages: Messages) -> str:
    return "".join(message["content"]["text"] for message in messages if message["msg_type"] == "stream")


def final(messages: Messages) -> str:
    """The static form that stays, as Markdown."""
    kinds = ("display_data", "update_display_data")
    *_, last = (message["content"]["data"] for message in messages if message["msg_type"] in kinds)
    text: str = last["text/markdown"]
    return text


@pytest.mark.parametrize("has_subshell", [True, False], ids=["on a subshell", "on the shell that is busy"])
def test_an_answer_reaches_the_kernel_in_mid_cell(kernel: Kernel, has_subshell: bool) -> None:
    subshell = kernel.make_subshell() if has_subshell else None
    kernel.run("got.clear()")
    messages = kernel.run(ASK.format(""), react=Page(kernel, subshell=subshell, approved=True))
    assert "state: output-available" in final(messages)
    messages = kernel.run(ASK.format(""), react=Page(kernel, subshell=subshell, approved=False, reason="not today"))
    assert "state: output-denied" in final(messages)
    assert "not today" in final(messages)
    assert printed(kernel.run("print(got)")) == "[1]\n"


def test_with_nobody_there_a_call_is_denied_with_a_clear_text(kernel: Kernel) -> None:
    messages = kernel.run(ASK.format(""), attended=False)
    assert "state: output-denied" in final(messages)
    assert "Nobody is here to ask whether keep may run" in final(messages)


def test_where_no_click_can_be_heard_in_mid_cell_the_kernel_asks_by_keys(kernel: Kernel) -> None:
    kernel.run("from toolcall_nb.notebook import widget\nusual = widget._receive_while_routed, widget._has_subshells")
    kernel.run("widget._receive_while_routed = widget._has_subshells = lambda *_: False")
    messages = kernel.run(ASK.format(""), typed=["n", "no thanks"])
    assert "state: output-denied" in final(messages)
    assert "no thanks" in final(messages)
    messages = kernel.run(ASK.format(""), typed=["y"])
    assert "state: output-available" in final(messages)
    kernel.run("widget._receive_while_routed, widget._has_subshells = usual")


def test_where_no_widget_can_be_had_the_kernel_asks_by_keys_and_in_the_background_nobody(kernel: Kernel) -> None:
    kernel.run(
        "from toolcall_nb.notebook import live_display as live\nusual = live.LiveDisplay\nlive.LiveDisplay = None"
    )
    assert "state: output-available" in final(kernel.run(ASK.format(""), typed=["y"]))
    wait = "get_ipython().magics_manager.registry['ToolchatMagics'].threads._runs['main']._thread.join()"
    messages = kernel.run(ASK.format("--background")) + kernel.run(wait)
    assert "state: output-denied" in final(messages)
    kernel.run("live.LiveDisplay = usual")


def test_an_interrupt_while_a_person_is_asked_ends_the_turn_and_the_next_one_works(kernel: Kernel) -> None:
    def interrupt(message: dict[str, Any]) -> None:
        if asked(message) is not None:
            kernel.interrupt()

    messages = kernel.run(ASK.format(""), react=interrupt)
    assert "state: interrupted" in final(messages)
    assert [message for message in messages if message["msg_type"] == "error"] == []
    again = "%%toolchat --model caller --approve ask\nKeep it."
    assert "state: output-available" in final(kernel.run(again, react=Page(kernel, approved=True)))


def test_ask_holds_for_later_cells_once_it_is_set_and_for_the_notebooks_own_chat(
    kernel: Kernel,
) -> None:
    assert printed(kernel.run("%toolchat approve ask")) == "approve: ask\n"
    plain = "%%toolchat --model caller --new\nKeep it."
    assert "state: output-denied" in final(kernel.run(plain, react=Page(kernel, approved=False)))
    messages = kernel.run("print(chat.send('Again.').calls[0].state.value)", typed=["y"])
    assert printed(messages).endswith("output-available\n")
    messages = kernel.run("print(chat.send('Again.').calls[0].state.value)", attended=False)
    assert printed(messages) == "output-denied\n"
    assert printed(kernel.run("%toolchat approve auto")) == "approve: auto\n"
    assert "state: output-available" in final(kernel.run(plain))


def test_stop_said_by_the_program_ends_the_waiting_too(kernel: Kernel) -> None:
    def stop(message: dict[str, Any]) -> None:
        if asked(message) is not None:
            kernel.post(message["content"]["comm_id"], {"type": "stop"})

    assert "state: interrupted" in final(kernel.run(ASK.format(""), react=stop))
    kernel.run(ASK.format("--background"))
    kernel.run("chat.stop()")
    kernel.run("assert get_ipython().magics_manager.registry['ToolchatMagics'].threads._runs['main'].wait(30)")
    assert printed(kernel.run("print(chat.transcript.messages[-1].aborted)")) == "stopped\n"


def test_the_debugger_opens_in_the_frame_of_the_tool_that_failed(kernel: Kernel) -> None:
    kernel.run("def broken(value: int) -> int:\n    inner = value + 41\n    raise ValueError('no such thing')")
    kernel.run("from toolcall_nb.tools import Tool\nbroken_tool = Tool.from_function(broken, name='keep')")
    kernel.run("%%toolchat --model caller --tools broken_tool --new\nKeep it.")
    messages = kernel.run("%debug", typed=["inner", "q"])
    assert "42" in printed(messages)
    assert "no such thing" in printed(messages)


def test_a_call_becomes_a_new_cell(kernel: Kernel) -> None:
    kernel.run("%%toolchat --model caller --new\nKeep it.")
    messages = kernel.run("%toolchat code call_1")
    assert printed(messages) == ""
    (reply,) = [message for message in messages if message["msg_type"] == "execute_reply"]
    (payload,) = reply["content"]["payload"]
    assert payload == {"source": "set_next_input", "text": "keep(value=1)", "replace": False}
