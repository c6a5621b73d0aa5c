"""`GraphRun` reads the items of one run of LangGraph: of a graph, or of the graph inside a call.

Source: langgraph 1.2 (pregel/main.py, types.py) and langchain_core 1.7 (tracers/event_stream.py, runnables/schema.py).
Seed 003 takes the names of the tools from ``astream_events``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from toolcall_nb.adapters.common_events import error_event
from toolcall_nb.adapters.langchain.conversation import Conversation
from toolcall_nb.adapters.langchain.interrupts import approval_request, interrupt_actions
from toolcall_nb.adapters.langchain.langgraph_protocol import TypedEvents
from toolcall_nb.adapters.langchain.messages import is_chunk, message_of, messages_in, role_of
from toolcall_nb.core import events as ev
from toolcall_nb.core.events import Event
from toolcall_nb.core.sdk_objects import as_json_value, as_mapping, get, type_name

INTERRUPT = "__interrupt__"
"""The name under which interrupts are in a state and in updates."""


class GraphRun:
    """Reads the items of one run, in whichever modes: of a graph with its subgraphs, or of the graph inside a call.

    Of ``astream_events`` it reads what the models and tools did and the messages that a node created without a model,
    but not their inputs. A state is read as a conversation, from its first message.

    The results of two calls with one id are paired in their order. With ``defers_shared_ids``, `take_task_result` pairs
    them by the tasks that ran the calls. The prompts of a run ``is_nested`` inside a call are left out: they are in the
    call's arguments.
    """

    def __init__(self, defers_shared_ids: bool = False, *, is_nested: bool = False) -> None:
        self._conversation = Conversation(hears_others=not is_nested)
        self._conversation.defers_shared_ids = defers_shared_ids
        self._typed = TypedEvents(self._conversation)
        self._runs: dict[str, str] = {}  # replies, by the model's run
        self._position = 0
        self._errors: set[str] = set()  # of tasks; that of a subgraph is also the one of the task around it

    def take(self, mode: str, data: Any, namespace: Any = None) -> list[Event]:
        """Returns the events of one item: its mode, or ``event`` or ``protocol``, and its data."""
        if mode == "event":
            return self._event(data)
        if mode == "protocol":
            params = as_mapping(data.get("params"))
            return self._of_mode(str(data.get("method")), params.get("data"), params.get("namespace"))
        return self._of_mode(mode, data, namespace)

    def close(self) -> list[Event]:
        """Returns the closing events of everything still open."""
        return self._conversation.close()

    def take_task_result(self, result: Any, call_id: str | None) -> list[Event]:
        """Reads the messages that a task returned. ``call_id`` is our id of the call that the task ran, if one."""
        messages = [message for message in messages_in(result) if role_of(message) == "tool"]
        return [event for message in messages for event in self._conversation.answer_shared(message, call_id)]

    def mark_read(self, messages: Iterable[Any]) -> None:
        """Marks messages as read, which the graph had before."""
        for item in messages:
            message = message_of(item)
            if message is not None:
                self._conversation.mark_read(message)

    def calls_asked_about(self, value: Any, besides: Sequence[str | None] = ()) -> list[str | None]:
        """Returns the ids of the calls that an interrupt of LangChain's middleware asks about, in the order of its
        actions; None for an action that is no call of the open message. Other interrupts ask about none.

        ``besides`` are calls that other interrupts ask about.
        """
        replies, calls = self._conversation.replies, list[str | None]()
        if get(value, "type", str) == "tool_approval":
            call_id = get(value, "tool_call_id", str)
            return [None if call_id is None else replies.matching_call(call_id, as_mapping(value).get("args"), besides)]
        for action in get(value, "action_requests", list) or ():
            calls.append(replies.waiting_for(as_mapping(action), besides=[*besides, *calls]))
        return calls

    def call_of_tool(self, run_id: str) -> str | None:
        """Returns our id of the call that a tool's run of ``astream_events`` runs."""
        return self._conversation.replies.running.get(run_id)

    def shares_id(self, call_id: str) -> bool:
        """Whether another call of the same reply has the same id, so that the graph takes the two for one."""
        return self._conversation.replies.shares_id(call_id)

    def open_ids(self) -> dict[str, str]:
        """Returns the graph's ids of the calls that have not ended, by ours."""
        return self._conversation.replies.ids.open_ids()

    def expect(self, ids: Mapping[str, str]) -> None:
        """Notes the calls of an earlier run (`open_ids`), whose results come in this one."""
        self._conversation.replies.expect(ids)

    def call_of(self, call: Mapping[str, Any], besides: Collection[str]) -> str:
        """Returns our id of a call of a graph's state, preferably one that is not among ``besides``."""
        return self._conversation.replies.matching_call(str(call.get("id")), call.get("args"), besides)

    # stream_mode

    def _of_mode(self, mode: str, data: Any, namespace: Any = None) -> list[Event]:
        match mode:
            case "messages":
                first, metadata = data if isinstance(data, tuple | list) and len(data) == 2 else (data, {})
                self._note_agent(metadata)
                message = message_of(first)
                if message is None:
                    return self._typed.take(as_mapping(first), as_mapping(metadata), namespace)
                return self._conversation.take(message)
            case "values":
                return [*self._state(data, namespace), *self._interrupts(as_mapping(data).get(INTERRUPT))]
            case "updates":
                return self._updates(as_mapping(data))
            case "tools":
                return self._typed.tool(as_mapping(data))
            case "custom":
                return self._conversation.replies.message.other(ev.Data("custom", as_json_value(data)))
            case "tasks":
                return self._task(as_mapping(data), namespace)
            case "checkpoints":
                return self._checkpoint(as_mapping(data), namespace)
            case "debug":
                kind, payload = as_mapping(data).get("type"), as_mapping(as_mapping(data).get("payload"))
                reader = self._checkpoint if kind == "checkpoint" else self._task
                return reader(payload, namespace)
        return []

    def _task(self, task: Mapping[str, Any], namespace: Any) -> list[Event]:
        """Reads what a task wrote, and the input of the first one; that of a later task was read before."""
        prompts = [] if self._conversation.has_begun else self._state(task.get("input"), namespace)
        messages = [message for value in _writes(task.get("result")) for message in messages_in(value)]
        read = [*prompts, *self._update(messages), *self._interrupts(task.get("interrupts"))]
        error = task.get("error")
        text = _error_text(error)
        if error is None or text in self._errors:
            return read
        self._errors.add(text)
        name = get(task, "name", str)
        task_error = error_event(f"The task {name!r}" if name else "A task", text)
        return [*read, *self._conversation.replies.message.other(task_error)]

    def _checkpoint(self, checkpoint: Mapping[str, Any], namespace: Any) -> list[Event]:
        events = self._state(checkpoint.get("values"), namespace)
        for task in get(checkpoint, "tasks", (list, tuple)) or ():
            events += self._interrupts(as_mapping(task).get("interrupts"))
        return events

    def _state(self, state: Any, namespace: Any) -> list[Event]:
        """Reads a state's messages, but not the prompt of an agent that runs in a tool: it would end the message."""
        events: list[Event] = []
        messages = messages_in(state)
        is_in_a_tool = bool(namespace) and bool(self.open_ids())
        for position, message in enumerate(messages):
            has_name = message.get("id") is not None or role_of(message) == "tool"
            if is_in_a_tool and role_of(message) in ("user", "system"):
                self._conversation.mark_read(message)
            elif not is_chunk(message) and (has_name or position >= self._position):
                events += self._conversation.take(message)
        self._position = max(self._position, len(messages))
        return events

    def _updates(self, updates: Mapping[str, Any]) -> list[Event]:
        events: list[Event] = []
        for node, update in updates.items():
            events += self._interrupts(update) if node == INTERRUPT else self._update(messages_in(update))
        return events

    def _update(self, messages: list[Mapping[str, Any]]) -> list[Event]:
        """Reads what a node added. A subgraph adds its whole state: prompts before a reply that was read are old."""
        read = [index for index, message in enumerate(messages) if self._conversation.has_read(message)]
        events: list[Event] = []
        for index, message in enumerate(messages):
            if read and index < read[-1] and role_of(message) in ("user", "system"):
                self._conversation.mark_read(message)
            events += self._conversation.take(message)
        return events

    def _interrupts(self, interrupts: Any) -> list[Event]:
        """Reads interrupts: requests of LangChain's middleware to approve calls, or anything else a graph waits for."""
        events: list[Event] = []
        replies = self._conversation.replies
        for interrupt in interrupts if isinstance(interrupts, list | tuple) else ():
            value = as_json_value(getattr(interrupt, "value", as_mapping(interrupt).get("value")))
            actions = zip(interrupt_actions(value), self.calls_asked_about(value), strict=True)
            requests = [
                approval_request(interrupt, action, call_id) for action, call_id in actions if call_id is not None
            ]
            events += requests
            if not requests:
                events += replies.message.other(ev.Data("interrupt", value))
        return events

    # astream_events

    def _event(self, event: Mapping[str, Any]) -> list[Event]:
        reader = self._READERS.get(str(event.get("event")))
        self._note_agent(event.get("metadata"))
        run = get(event, "run_id", str) or ""
        return reader(self, run, as_mapping(event.get("data")), event) if reader is not None else []

    def _note_agent(self, metadata: Any) -> None:
        """Notes the name of the agent (``create_agent(name=…)``) whose items come."""
        self._conversation.replies.agent = get(metadata, "lc_agent_name", str)

    def _model_start(self, run: str, data: Mapping[str, Any], event: Mapping[str, Any]) -> list[Event]:
        """Marks the input of a model as read: it was, or belongs to an earlier turn."""
        prompts = as_mapping(data.get("input")).get("messages")
        for item in prompts[0] if isinstance(prompts, list) and prompts and isinstance(prompts[0], list) else ():
            message = message_of(item) or {}
            if role_of(message) in ("assistant", "tool"):
                self._conversation.mark_past(message)
        return []

    def _model_stream(self, run: str, data: Mapping[str, Any], event: Mapping[str, Any]) -> list[Event]:
        chunk = data.get("chunk")
        message = message_of(chunk)
        if message is None:  # of a text completion model
            text = chunk if isinstance(chunk, str) else getattr(chunk, "text", None)
            message = {"type": "AIMessageChunk", "content": text if isinstance(text, str) else ""}
        reply = self._runs.setdefault(run, get(message, "id", str) or run)
        return self._conversation.take({**message, "id": reply})

    def _model_end(self, run: str, data: Mapping[str, Any], event: Mapping[str, Any]) -> list[Event]:
        output = data.get("output")
        generations = as_mapping(output).get("generations")
        if isinstance(generations, list) and generations and isinstance(generations[0], list) and generations[0]:
            generation = generations[0][0]
            output = getattr(generation, "message", None) or as_mapping(generation).get("message")
        message = message_of(output)
        if message is None:
            return []
        reply = self._runs.pop(run, None)
        events = self._conversation.take({**message, "type": "ai", "id": reply or message.get("id")})
        self._conversation.mark_read(message)
        return events

    def _tool_start(self, run: str, data: Mapping[str, Any], event: Mapping[str, Any]) -> list[Event]:
        name = get(event, "name", str) or get(data, "name", str) or ""
        replies = self._conversation.replies
        events = replies.start_tool(run, name, as_json_value(data.get("input")))
        return [*events, ev.ToolExecution(replies.running.get(run, run), "running")]

    def _tool_end(self, run: str, data: Mapping[str, Any], event: Mapping[str, Any]) -> list[Event]:
        replies, output = self._conversation.replies, data.get("output")
        call_id = replies.running.get(run)
        answers = [message for message in _answers(output) if role_of(message) == "tool"]
        if answers or call_id is None:
            return [ended for message in answers for ended in self._conversation.answer(message, call_id)]
        if output is None and call_id != run:
            return []  # version 1 of the events sends this for a failure too; the tool's message follows
        return replies.outcome(call_id, ev.ToolOutputAvailable(call_id, as_json_value(output)), {})

    def _tool_error(self, run: str, data: Mapping[str, Any], event: Mapping[str, Any]) -> list[Event]:
        replies, error = self._conversation.replies, data.get("error")
        named = get(data, "tool_call_id", str)
        call_id = replies.running.get(run)
        is_other = call_id is None or replies.ids.provider_id(call_id) != named
        if named is not None and is_other and replies.has_call(named):
            replies.release(call_id or named)
            call_id = replies.ids.first_open(named)
        if call_id is None:
            return []
        return replies.outcome(call_id, ev.ToolOutputError(call_id, _error_text(error)), {})

    def _chain_stream(self, run: str, data: Mapping[str, Any], event: Mapping[str, Any]) -> list[Event]:
        """Reads messages that a node created; one without an id is read when the graph has given it one."""
        chunk = as_mapping(data.get("chunk"))
        updates = [chunk] if "messages" in chunk else chunk.values()
        messages = [message for update in updates for message in messages_in(update)]
        return self._take_created([message for message in messages if message.get("id") is not None])

    def _chain_end(self, run: str, data: Mapping[str, Any], event: Mapping[str, Any]) -> list[Event]:
        if event.get("parent_ids"):
            return []
        messages = messages_in(data.get("output"))
        people = [index for index, message in enumerate(messages) if role_of(message) == "user"]
        return self._take_created(messages[people[-1] + 1 :] if people else [])

    def _take_created(self, messages: list[Mapping[str, Any]]) -> list[Event]:
        events: list[Event] = []
        for message in messages:
            is_ours = role_of(message) in ("assistant", "tool") and not is_chunk(message)
            if is_ours and not self._conversation.has_read(message):
                events += self._conversation.take(message)
        return events

    def _custom(self, run: str, data: Mapping[str, Any], event: Mapping[str, Any]) -> list[Event]:
        name = get(event, "name", str) or "custom"
        return self._conversation.replies.message.other(ev.Data(name, as_json_value(event.get("data"))))

    _READERS: ClassVar[Mapping[str, Callable[..., list[Event]]]] = {
        "on_chat_model_start": _model_start,
        "on_chat_model_stream": _model_stream,
        "on_chat_model_end": _model_end,
        "on_llm_stream": _model_stream,
        "on_tool_start": _tool_start,
        "on_tool_end": _tool_end,
        "on_tool_error": _tool_error,
        "on_chain_stream": _chain_stream,
        "on_chain_end": _chain_end,
        "on_custom_event": _custom,
    }


def _answers(output: Any) -> Iterator[Mapping[str, Any]]:
    """Yields the messages in a tool's output: a message, a ``Command`` that adds messages, or a list of these."""
    for item in output if isinstance(output, list) else [output]:
        update = getattr(item, "update", None) if type_name(item) == "langgraph.types.Command" else item
        yield from messages_in(update)


def _writes(result: Any) -> Iterator[Any]:
    """Yields what a task wrote: pairs of channel and value, or an object whose channels may have several values."""
    if isinstance(result, list | tuple):
        yield from (pair[1] for pair in result if isinstance(pair, list | tuple) and len(pair) == 2)
        return
    several = get(as_mapping(result).get("messages"), "$writes", list)
    yield from [result] if several is None else several


def _error_text(error: Any) -> str:
    return f"{type(error).__name__}: {error}" if isinstance(error, BaseException) else str(as_json_value(error))
