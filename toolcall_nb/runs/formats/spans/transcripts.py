"""Makes the transcript of a trace: `read_trace`.

Spans are read in the order of their starts. A request to a model repeats the history and adds its answer: the new part
of the history, and the answer, become messages. The spans below a tool's span are a conversation of their own,
of a sub-agent: its calls have the tool's call as their parent, and its texts are that call's log.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable
from itertools import islice
from typing import Any

from msgspec import Struct

from toolcall_nb.core.events import MISSING, Diagnostic, Json
from toolcall_nb.core.json_text import json_text
from toolcall_nb.core.transcript import ErrorPart, Part, ReasoningPart, Role, TextPart, Transcript
from toolcall_nb.runs.formats.spans.conventions import SpanKind, kind_of, read_error
from toolcall_nb.runs.formats.spans.history import RecordedMessage
from toolcall_nb.runs.formats.spans.joining import (
    CallIndex,
    CallRegister,
    HistoryMatcher,
    JoinedCall,
    MessageDraft,
    RequestDraft,
    finish_drafts,
    is_same_value,
)
from toolcall_nb.runs.formats.spans.readings import ModelCall, read_agent_messages, requests_in_tree
from toolcall_nb.runs.formats.spans.recorded_parts import CallResult, RequestedCall
from toolcall_nb.runs.formats.spans.span import Span, SpanTree
from toolcall_nb.runs.formats.spans.tool_runs import ToolRun, read_tool_run

_SECOND = 10**9
_MOST_WAITING = 64
_UNNAMED_ERROR = "The span ended with an error and does not say which."
_REPORT = re.compile(r"\[[^\]\n]{1,200}\] (said:|called tool `|`[^`\n]{1,200}` tool returned result:)")
"""The text by which ADK reports to an agent what another agent did. The transcript has it from that agent."""


class TraceReading(Struct):
    """A trace that was read: its transcript, the kind of each span of the tree, and the tools that were offered."""

    transcript: Transcript
    kinds: list[SpanKind]
    tools: list[Json]


class _Conversation:
    """The messages between one agent and its models. ``inside`` is the call that it is a part of.

    ``counts`` has how often each part is in the transcript, and ``requests`` the requests to models in order.
    """

    def __init__(self, inside: JoinedCall | None, everywhere: CallIndex) -> None:
        self.inside = inside
        self.counts: Counter[Hashable] = Counter()
        self.register = CallRegister(everywhere)
        self.requests: list[RequestDraft] = []


def read_trace(tree: SpanTree) -> TraceReading:
    """Reads a trace."""
    return _Reader(tree).read()


class _Reader:
    def __init__(self, tree: SpanTree) -> None:
        self._tree = tree
        self._kinds = [kind_of(span) for span in tree.spans]
        self._tools: list[Json] = []
        self._tool_texts: set[str] = set()
        self._requests = requests_in_tree(tree, self._kinds)
        self._drafts: list[MessageDraft] = []
        self._everywhere = CallIndex()
        self._main = _Conversation(None, self._everywhere)
        self._conversations: dict[int, _Conversation] = {}
        self._draft_of: dict[int, MessageDraft] = {}  # by the id() of the call in it
        self._scopes: list[JoinedCall | None] = []
        self._calls: list[JoinedCall | None] = []
        self._has_user = False
        self._reports = 0
        self._began = min((span.start for span in tree.spans if span.start is not None), default=0)

    def read(self) -> TraceReading:
        """Reads all spans."""
        for i, span in enumerate(self._tree.spans):
            parent = self._tree.parents[i]
            self._scopes.append(None if parent is None else self._calls[parent] or self._scopes[parent])
            self._calls.append(self._read_tool(i, span) if self._kinds[i] == "tool" else None)
            if (request := self._requests.get(i)) is not None:
                self._read_request(self._conversation(self._scopes[i]), request)
        self._read_agents()
        return TraceReading(self._transcript(), self._kinds, self._tools)

    def _conversation(self, inside: JoinedCall | None) -> _Conversation:
        if inside is None:
            return self._main
        if id(inside) not in self._conversations:
            self._conversations[id(inside)] = _Conversation(inside, self._everywhere)
        return self._conversations[id(inside)]

    # Requests to models

    def _read_request(self, conversation: _Conversation, request: ModelCall) -> None:
        for tool in request.tools:
            if (text := json_text(tool)) not in self._tool_texts:
                self._tool_texts.add(text)
                self._tools.append(tool)
        self._read_history(conversation, request.input)
        draft = self._assistant(conversation)
        request_draft = RequestDraft(request.usage)
        for message in request.output:
            for part in message.parts:
                self._read_answer(conversation, request_draft, part)
        if request.error is not None:
            self._put(conversation, draft, ErrorPart(request.error or _UNNAMED_ERROR))
        if conversation.inside is None:
            draft.cut = request.cut or draft.cut
        draft.requests.append(request_draft)
        conversation.requests.append(request_draft)

    def _read_history(self, conversation: _Conversation, messages: Iterable[RecordedMessage]) -> None:
        matcher = HistoryMatcher(conversation.register)
        counts: Counter[Hashable] = Counter()
        for message in messages:
            if message.role == "user" and any(map(_is_report, message.parts)):
                self._reports += 1
                continue
            draft: MessageDraft | None = None
            for part in message.parts:
                if isinstance(part, RequestedCall):
                    if matcher.call(part) is None:
                        call = conversation.register.add(JoinedCall(part.name, part.id, requested=part))
                        matcher.match(call, part)
                        self._add_call(conversation, call)
                elif isinstance(part, CallResult):
                    if matcher.result(part) is None and self._is_new(conversation, counts, "user", part):
                        # a result whose call is not in the file becomes a call without arguments
                        call = conversation.register.add(JoinedCall(part.name or "tool", part.id, result=part))
                        self._add_call(conversation, call)
                elif self._is_new(conversation, counts, message.role, part):
                    draft = draft or self._draft(conversation, message.role)
                    self._put(conversation, draft, part, message.role)

    def _is_new(self, conversation: _Conversation, counts: Counter[Hashable], role: Role, part: Any) -> bool:
        """Whether a history, whose parts ``counts`` counts, has a part more often than the conversation so far."""
        key = _key(role, part)
        counts[key] += 1
        if counts[key] <= conversation.counts[key]:
            return False
        conversation.counts[key] += 1
        return True

    def _read_answer(self, conversation: _Conversation, request: RequestDraft, part: Any) -> None:
        if isinstance(part, RequestedCall):
            call = conversation.register.request(part)
            request.calls.append(call)
            if id(call) not in self._draft_of:
                self._add_call(conversation, call)
        elif isinstance(part, CallResult):
            if HistoryMatcher(conversation.register).result(part) is None:
                # of the provider's own tools, whose results have no id: it is that of the call before it
                waiting = (call for call in islice(reversed(request.calls), _MOST_WAITING) if call.run is None)
                if (last := next((call for call in waiting if call.result is None), None)) is not None:
                    last.result = part
        else:
            conversation.counts[_key("assistant", part)] += 1
            self._put(conversation, self._assistant(conversation), part, "assistant")

    # Messages

    def _draft(self, conversation: _Conversation, role: Role) -> MessageDraft:
        """Returns the message that the next part belongs to; each message of a user or the system is one of its own."""
        if role == "assistant" or conversation.inside is not None:
            return self._assistant(conversation)
        self._has_user = self._has_user or role == "user"
        self._drafts.append(MessageDraft(role))
        return self._drafts[-1]

    def _assistant(self, conversation: _Conversation) -> MessageDraft:
        draft = None if conversation.inside is None else self._draft_of.get(id(conversation.inside))
        if draft is not None:
            return draft
        if not self._drafts or self._drafts[-1].role != "assistant":
            self._drafts.append(MessageDraft("assistant"))
        return self._drafts[-1]

    def _put(self, conversation: _Conversation, draft: MessageDraft, part: Part, role: Role = "assistant") -> None:
        """Adds a part. A sub-agent's texts are the log of its call; that call also keeps the sub-agent's prompts."""
        if conversation.inside is None:
            draft.parts.append(part)
        elif role == "assistant" and isinstance(part, TextPart | ReasoningPart | ErrorPart):
            conversation.inside.log.append(part.text)
        else:
            fields = {"text": part.text} if isinstance(part, TextPart) else _plain(part)
            conversation.inside.extra.setdefault("messages", []).append({"role": role, **fields})

    def _add_call(self, conversation: _Conversation, call: JoinedCall) -> None:
        draft = self._assistant(conversation)
        draft.parts.append(call)
        self._draft_of[id(call)] = draft
        call.parent = conversation.inside

    # Tools

    def _read_tool(self, i: int, span: Span) -> JoinedCall:
        conversation = self._conversation(self._scopes[i])
        run = read_tool_run(span)
        outer = conversation.inside
        if outer is not None and outer.run is not None and _is_same_run(outer, run, span):
            outer.run.input = run.input if outer.run.input is MISSING else outer.run.input
            outer.run.output = run.output if outer.run.output is MISSING else outer.run.output
            return outer
        call = conversation.register.run(run)
        if call is None:
            call = conversation.register.add(JoinedCall(run.name, run.id, run=run))
            self._add_call(conversation, call)
        call.has_ended = span.end is not None
        if span.start is not None:
            call.started = (span.start - self._began) / _SECOND
            call.seconds = max(0, span.end - span.start) / _SECOND if span.end is not None else None
        return call

    # Agents and the whole run

    def _read_agents(self) -> None:
        """Takes the beginning and the end of the run from the spans around, where no request to a model has them."""
        for i, span in enumerate(self._tree.spans):
            is_root = self._tree.parents[i] is None
            if self._scopes[i] is None and (self._kinds[i] == "agent" or (is_root and self._kinds[i] == "other")):
                if self._has_user and self._has_answer():
                    break
                self._read_agent(span)
        has_error = any(_has_failed(part) for draft in self._drafts for part in draft.parts)
        if self._kinds[:1] in (["agent"], ["other"]) and not has_error:
            error = read_error(self._tree.spans[0])
            self._assistant(self._main).parts += [] if error is None else [ErrorPart(error or _UNNAMED_ERROR)]

    def _read_agent(self, span: Span) -> None:
        inputs, outputs = read_agent_messages(span)
        if not self._drafts:
            self._read_history(self._main, inputs)
        elif not self._has_user:
            drafts, self._drafts = self._drafts, []
            self._read_history(self._main, [message for message in inputs if message.role != "assistant"])
            self._drafts += drafts
        if not self._has_answer():
            counts: Counter[Hashable] = Counter()
            for message in outputs[-1:]:
                for part in message.parts:
                    if isinstance(part, TextPart) and self._is_new(self._main, counts, "assistant", part):
                        self._put(self._main, self._assistant(self._main), part)

    def _has_answer(self) -> bool:
        """Whether the run ends with a text of the assistant."""
        last = self._drafts[-1].parts[-1:] if self._drafts and self._drafts[-1].role == "assistant" else []
        return any(isinstance(part, TextPart) for part in last)

    # The end

    def _transcript(self) -> Transcript:
        conversations = (self._main, *self._conversations.values())
        messages = finish_drafts(self._drafts, [conversation.requests for conversation in conversations])
        diagnostics = list(self._tree.diagnostics)
        if self._reports:
            what = "message tells" if self._reports == 1 else "messages tell"
            problem = f"{self._reports} {what} an agent what another one did."
            diagnostics.append(Diagnostic(problem, "It is in the transcript only once."))
        return Transcript(messages, diagnostics=tuple(diagnostics))


def _is_same_run(outer: JoinedCall, run: ToolRun, span: Span) -> bool:
    """Whether a tool's span inside another records the same call, as those of an MCP client and its server do."""
    if outer.run is None or outer.name != run.name or (run.id and outer.run.id and run.id != outer.run.id):
        return False
    if run.id and run.id == outer.run.id:
        return True
    if run.input is MISSING:
        return "mcp.method.name" in span.attributes
    return is_same_value(run.input, outer.run.input)


def _has_failed(part: object) -> bool:
    if isinstance(part, JoinedCall):
        return part.run is not None and part.run.error is not None
    return isinstance(part, ErrorPart)


def _is_report(part: object) -> bool:
    return isinstance(part, TextPart) and _REPORT.match(part.text) is not None


def _key(role: Role, part: Any) -> Hashable:
    """Returns what identifies a part that a later request repeats."""
    if isinstance(part, TextPart):
        return role, part.text.strip()
    if isinstance(part, ReasoningPart):
        return "reasoning", part.text.strip()
    return type(part).__name__, json_text(_plain(part))


def _plain(part: Any) -> dict[str, Any]:
    return {name: value for name in part.__struct_fields__ if (value := getattr(part, name)) not in (None, MISSING)}
