"""The former names of the approval mode, the approver and the remembered approvals still work, with a warning."""

from __future__ import annotations

from importlib import import_module

import pytest

from toolcall_nb.approvals import APPROVAL_MODES, ApprovalMode, ApprovalScope, Decision, RememberedApprovals
from toolcall_nb.chat import Chat
from toolcall_nb.core.transcript import ToolCall
from toolcall_nb.server.settings import Settings


def approver(call: ToolCall) -> Decision:
    return Decision(True)


def test_a_chat_takes_the_former_parameters() -> None:
    remembered = RememberedApprovals()
    with pytest.warns(DeprecationWarning, match="is now") as caught:
        chat = Chat(approve="ask", approver=approver, grants=remembered)  # type: ignore[call-arg]
    assert [str(warning.message) for warning in caught] == [
        "The parameter 'approve' is now 'approval_mode'",
        "The parameter 'approver' is now 'ask_approval'",
        "The parameter 'grants' is now 'remembered_approvals'",
    ]
    assert {warning.filename for warning in caught} == {__file__}
    assert (chat.approval_mode, chat.ask_approval) == ("ask", approver)
    assert chat.remembered_approvals is remembered


def test_a_parameter_is_not_given_by_both_of_its_names() -> None:
    with (
        pytest.warns(DeprecationWarning, match="approve"),
        pytest.raises(TypeError, match="'approve' is the former name of"),
    ):
        Chat(approve="auto", approval_mode="never")  # type: ignore[call-arg]


def test_a_chat_has_the_former_attributes() -> None:
    chat = Chat()
    with pytest.warns(DeprecationWarning, match=r"Chat\.approve is now Chat\.approval_mode"):
        assert chat.approve == "auto"
    with pytest.warns(DeprecationWarning, match=r"Chat\.grants is now"):
        assert chat.grants is chat.remembered_approvals
    with pytest.warns(DeprecationWarning, match=r"Chat\.approver is now Chat\.ask_approval"):
        chat.approver = approver
    assert chat.ask_approval is approver


def test_a_server_takes_the_former_setting() -> None:
    with pytest.warns(DeprecationWarning, match="approval_mode"):
        assert Settings(approve="never").approval_mode == "never"


@pytest.mark.parametrize(
    ("module", "name", "now"),
    [
        ("chat", "Approve", ApprovalMode),
        ("chat", "Grants", RememberedApprovals),
        ("tools", "Grants", RememberedApprovals),
        ("tools.permission", "Grants", RememberedApprovals),
        ("tools.permission", "Scope", ApprovalScope),
        ("notebook.magic", "APPROVALS", APPROVAL_MODES),
    ],
)
def test_a_former_name_leads_to_the_same_object(module: str, name: str, now: object) -> None:
    with pytest.warns(DeprecationWarning, match=name):
        assert getattr(import_module(f"toolcall_nb.{module}"), name) is now
