"""Keeps the module paths of version 0.1 importable: each old path leads to the module that holds its names now.

`install` adds a finder behind Python's own. It is asked only for modules that are not there, and gives those in the
table below a stand-in that looks names up in their new module and warns with `DeprecationWarning`. A name that was
renamed stands in ``_RENAMED``.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any
from warnings import warn

__all__ = ["install"]

_PACKAGE = "toolcall_nb"
_MOVED = """
adapters.anthropic_blocks adapters.anthropic.blocks
adapters.anthropic_messages adapters.anthropic.messages
adapters.assembling adapters.assembler
adapters.bedrock_messages adapters.bedrock.converse
adapters.google_arguments adapters.google.arguments
adapters.google_contents adapters.google.generate_content
adapters.google_interactions adapters.google.interactions
adapters.google_parts adapters.google.parts
adapters.kinds adapters.recognise
adapters.langchain_conversation adapters.langchain.conversation
adapters.langchain_messages adapters.langchain.messages
adapters.langchain_reply adapters.langchain.replies
adapters.langgraph adapters.langchain.langgraph
adapters.langgraph_protocol adapters.langchain.langgraph_protocol
adapters.openai_calls adapters.openai.tool_calls
adapters.openai_chat adapters.openai.chat
adapters.openai_choice adapters.openai.choice
adapters.openai_conversation adapters.openai.message_lists
adapters.openai_items adapters.openai.items
adapters.openai_messages adapters.openai.messages
adapters.openai_output adapters.openai.output
adapters.openai_parts adapters.openai.content
adapters.openai_responses adapters.openai.responses
adapters.parts adapters.common_events
adapters.pydantic_ai_parts adapters.pydantic_ai.parts
adapters.pydantic_ai_run adapters.pydantic_ai.run
adapters.plain adapters.sdk_objects
adapters.said adapters.message_lists
adapters.stage_logs adapters.own_formats
adapters.texts adapters.own_formats
adapters.turns adapters.message_lists
adapters.ui_calls adapters.ai_sdk.calls
adapters.ui_chunks adapters.ai_sdk.chunks
adapters.ui_messages adapters.ai_sdk.messages
adapters.wires adapters.own_formats
approval approvals.terminal
as_events core.replay
chat.asking chat.request
chat.messages chat.turn
chat.meter chat.turn
chat.reports chat.turn
chat.watch chat.calls
code core.call_code
dialect_names core.dialect_names
dialects.signature_detector dialects.signature
dialects.request dialects.base
dialects.prompt dialects.base
dialects.json_detector dialects.json_call
displays core.call_display
files traces.transcript_files
growing core.append_only
invisible core.invisible_characters
json_text core.json_text
live runs
live.asking approvals.page
live.clocks runs.clocks
live.document runs.document
live.face runs.run
live.footer render.run_footer
live.inbox notebook.widget
live.pacer runs.pacer
live.patches runs.document
live.progress runs.status
live.running runs.run
live.style frontend
live.taken render.run_footer
logs redaction.masked_logging
markdown.blocks render.markdown.blocks
markdown.definitions render.markdown.link_definitions
markdown.flavor render.markdown.flavor
markdown.highlight render.markdown.highlight
markdown.incremental render.markdown.incremental
markdown.math render.markdown.formulas
markdown.open_leaf render.markdown.open_fence
markdown.open_series render.markdown.open_list
markdown.open_text render.markdown.open_paragraph
markdown.packed render.markdown.compressed_texts
masking redaction
masking.assigned redaction.assignments
masking.commands redaction.commands
masking.formats redaction.key_formats
masking.headers redaction.headers
masking.known redaction.secret_forms
masking.manifests redaction.assignments
masking.marks redaction.masker
masking.names redaction.secret_names
masking.providers redaction.secret_names
masking.shapes redaction.value_shapes
masking.texts redaction.masker
masking.values redaction.masked_values
message_state core.message_state
models.arguments models.mock.arguments
models.bridge models.event_loop
models.calling models.callable_models
models.enveloped models.callable_models
models.facts models.mock.prompt_facts
models.held models.sdk_streams
models.http models.over_http
models.http.address models.over_http.exchange
models.http.answer models.over_http.response_body
models.http.bodies models.over_http.request_bodies
models.http.exchange models.over_http.exchange
models.http.fetched models.over_http.exchange
models.http.model models.over_http.model
models.http.responses models.over_http.responses
models.http.stream models.over_http.stream
models.kinds models.errors.error_kinds
models.known models.errors.provider_help
models.naming models.factory
models.not_models models.factory
models.peer models.errors.exception_details
models.played models.player
models.replaying models.replay
models.providers.call_ids models.providers.history
models.providers.errors_as_replies models.providers.building
models.scenarios models.mock.scenarios
models.trouble models.errors.translation
models.waits models.errors.retry_after
models.written models.mock.text_calls
notebook.answering notebook.model_settings
notebook.config notebook.model_settings
notebook.faces notebook.run_displays
notebook.live notebook.live_display
notebook.place notebook.environment
notebook.secrecy notebook.secrets_command
notebook.serving notebook.serve_command
notebook.shown notebook.stream_display
notebook.threads notebook.conversations
notebook.toolbox notebook.conversations
packing render.html_compression
picture_hosts redaction.saved_output
printed core.append_only
reducer core.reducer
render.activity render.shown_states
render.bundle render.mime_bundles
render.calls render.mime_bundles
render.card render.html_output.card
render.content render.wording
render.display render.html_output.result_display
render.live render.html_output.live_html
render.log render.log_lines
render.nodes render.html_output.nodes
render.page render.html_output.page
render.parts render.html_output.message_nodes
render.pictures render.html_output.pictures
render.sanitising render.html_output.sanitising
render.sections render.card_sections
render.values render.value_summary
render.views render.html_output.live_parts
render.yaml_like render.value_lines
runs.transcript_files traces.transcript_files
saved redaction.saved_output
secrets redaction.registered_secrets
server.answers server.responses
server.connections server.connection_limits
server.feed server.page_feed
server.log server.event_log
server.negotiation server.responses
server.outward server.public_view
server.problems server.responses
server.runs server.served_run
server.threads server.conversations
stages.fields stages.blocks
told core.result_text
tools.accepting tools.sources
tools.annotations tools.schemas.annotations
tools.bash tools.built_in.bash
tools.builtin tools.built_in
tools.command tools.built_in.shell_command
tools.deadlines tools.execution.deadlines
tools.docstrings tools.schemas.signature
tools.edit tools.built_in.edit
tools.edited_arguments approvals.edited_arguments
tools.failures tools.results.failures
tools.figures tools.output.figures
tools.head_and_tail tools.output.head_and_tail
tools.interrupting tools.execution.interrupts
tools.listening tools.output.patched_streams
tools.msgspec_types tools.schemas.msgspec_types
tools.naming tools.sources
tools.parallel tools.execution.parallel
tools.parameters tools.schemas.parameters
tools.permission approvals.decisions
tools.printing tools.output.captured_output
tools.progress tools.output
tools.pydantic_types tools.schemas.pydantic_types
tools.running tools.execution.runner
tools.schema tools.schemas.signature
tools.schema_arguments tools.schemas.json_schema
tools.schema_check tools.schemas.json_schema
tools.show tools.built_in.show_file
tools.tracebacks tools.results.tracebacks
tools.values tools.results.json_values
tools.workers tools.execution.workers
tools.yields tools.execution.workers
transcript core.transcript
type_names core.sdk_types
unicode core.text
usage core.usage
wire.ag_ui.documents wire.ag_ui.state
wire.ag_ui.patching wire.ag_ui.json_patch
wire.chat_sse wire.chat
wire.recognising wire
"""
"""Old module, new module; both without the package's name."""

_RENAMED = {
    "adapters.kinds.Kind": "adapters.recognise.SourceKind",
    "adapters.kinds.items_of": "adapters.reading.items_of",
    "adapters.kinds.kind_of": "adapters.kind_of",
    "adapters.kinds.STREAM_TYPES": "core.sdk_types.SDK_STREAM_TYPES",
    "adapters.kinds.WHOLE_TYPES": "core.sdk_types.SDK_REPLY_TYPES",
    "json_text.from_extended": "core.json_text.from_extended_json",
    "json_text.to_extended": "core.json_text.to_extended_json",
    "usage.Account": "core.usage.UsageSummary",
    "usage.Request": "core.usage.RequestUsage",
    "usage.account": "core.usage.read_usage",
    "usage.added_by": "core.usage.estimate_result_tokens",
    "usage.counts": "core.usage.read_token_counts",
    "usage.requests_of": "core.usage.read_requests",
    "usage.total": "core.usage.add_token_counts",
    "usage.total_cost": "core.usage.add_costs",
    "json_text.for_models": "core.json_text.to_strict_json",
    "live.MODULE": "frontend.MODULE",
    "live.document.PatchSource": "render.LiveHtml",
    "masking.mark": "redaction.named_mask",
    "models.naming.names": "models.factory.model_names",
    "reducer.known_id": "core.reducer.normalize_call_id",
    "transcript.FINAL_STATES": "core.call_states.FINAL_STATES",
    "transcript.TRANSITIONS": "core.call_states.TRANSITIONS",
    "told.LIMIT": "core.result_text.RESULT_LIMIT",
    "told.bounded": "core.result_text.truncate_text",
    "told.output_text": "core.result_text.format_output",
    "told.told": "core.result_text.truncate_output",
    "told.told_text": "core.result_text.format_result",
    "tools.bash.KEPT": "tools.built_in.bash._KEPT_BYTES",
    "tools.bash.SHOWN": "tools.built_in.bash._PRINTED_BYTES",
    "tools.builtin.BUILTIN": "tools.built_in.BUILT_IN_NAMES",
    "tools.builtin.builtin": "tools.built_in.built_in_tool",
    "tools.edit.MAX_BYTES": "tools.built_in.edit._MAX_BYTES",
    "tools.permission.Grants": "approvals.decisions.RememberedApprovals",
    "tools.permission.Scope": "approvals.decisions.ApprovalScope",
    "secrets.register_secret": "redaction.registration.register_secret",
    "tools.show.MAX_BYTES": "tools.built_in.show_file._MAX_BYTES",
    "tools.show.show": "tools.built_in.show_file.show_file",
    "usage.FIELDS": "core.usage.USAGE_FIELDS",
    "usage.NAMES": "core.usage.TOKEN_COUNTS",
}
"""Old module and name: new module and name; both without the package's name."""


@cache
def _moved() -> dict[str, str]:
    return dict(line.split() for line in _MOVED.split("\n") if line)


class _OldModule(ModuleType):
    """Stands in for a module that moved."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__all__":
            raise AttributeError(name)
        old = self.__name__.removeprefix(f"{_PACKAGE}.")
        home, _, new_name = _RENAMED.get(f"{old}.{name}", f"{_moved()[old]}.{name}").rpartition(".")
        try:
            value = getattr(import_module(f"{_PACKAGE}.{home}"), new_name)
        except AttributeError:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}") from None
        if name != "__all__":
            new = f"{_PACKAGE}.{home}.{new_name}"
            warn(f"{self.__name__}.{name} is now {new}", DeprecationWarning, stacklevel=2)
        return value

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the public function that has this name now: the import of a module sets the package's attribute."""
        package, name = sys.modules[_PACKAGE], self.__name__.removeprefix(f"{_PACKAGE}.")
        if name not in package.__all__:
            raise TypeError(f"the module {self.__name__!r} is not callable")
        return package.__getattr__(name)(*args, **kwargs)


class _OldPaths(MetaPathFinder, Loader):
    """Finds the stand-ins."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> Any:
        """The stand-in's spec, where the module has moved."""
        package, _, old = fullname.partition(".")
        if package != _PACKAGE or old not in _moved():
            return None
        return ModuleSpec(fullname, self, is_package=any(name.startswith(f"{old}.") for name in _moved()))

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """A stand-in that holds nothing yet."""
        return _OldModule(spec.name, f"The former path of `{_PACKAGE}.{_moved()[spec.name.partition('.')[2]]}`.")

    def exec_module(self, module: ModuleType) -> None:
        """Nothing: names are looked up when they are asked for."""


def install() -> None:
    """Makes old paths importable. A second call changes nothing."""
    if not any(isinstance(finder, _OldPaths) for finder in sys.meta_path):
        sys.meta_path.append(_OldPaths())
