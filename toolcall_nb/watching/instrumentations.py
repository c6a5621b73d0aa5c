"""Activates the instrumentations of clients for the time of a watch: `Instrumentations`.

An instrumentation is activated if it is installed and its client is imported, before the watch or while it goes on. One
that the user has activated stays as it is.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from toolcall_nb.core.json_text import json_text
from toolcall_nb.redaction.masked_logging import logger
from toolcall_nb.watching.private_spans import PRIVATE_PROVIDER

_log = logger("toolcall_nb.watching")


_KNOWN: Mapping[str, tuple[tuple[str, str], ...]] = {
    "openai": (
        ("opentelemetry.instrumentation.openai_v2", "OpenAIInstrumentor"),
        ("openinference.instrumentation.openai", "OpenAIInstrumentor"),
        ("opentelemetry.instrumentation.openai", "OpenAIInstrumentor"),
    ),
    "anthropic": (
        ("opentelemetry.instrumentation.anthropic", "AnthropicInstrumentor"),
        ("openinference.instrumentation.anthropic", "AnthropicInstrumentor"),
    ),
    "langchain_core": (("openinference.instrumentation.langchain", "LangChainInstrumentor"),),
}
"""The instrumentations of each client, as module and class. The first that can be imported is used."""


class Instrumentations:
    """The instrumentations that are active for a watch. ``on_content`` gets messages that are on no span."""

    def __init__(self, on_content: Callable[[Any, Mapping[str, Any]], None]) -> None:
        self._on_content = on_content
        self._active: list[Any] = []
        self._missing: dict[str, str] = {}
        self._is_over = False

    @property
    def missing(self) -> list[str]:
        """A sentence for each client that is imported and has no instrumentation that works."""
        return [*self._missing.values()]

    def activate(self) -> None:
        """Activates the instrumentations of the clients that are imported, and of each that will be."""
        for client in _KNOWN:
            if client in sys.modules:
                self._activate(client)
            elif find_spec("wrapt") is not None:  # which every instrumentation needs
                import_module("wrapt").register_post_import_hook(partial(self._on_import, client), client)

    def restore(self) -> None:
        """Ends what `activate` has begun."""
        self._is_over = True
        while self._active:
            try:
                self._active.pop().uninstrument()
            except Exception:
                _log.exception("An instrumentation could not be ended")

    def _on_import(self, client: str, module: Any) -> None:
        self._activate(client)

    def _activate(self, client: str) -> None:
        if self._is_over or any(_is_active(*known) for known in _KNOWN[client]):
            return
        reasons: list[str] = []
        for module, name in _KNOWN[client]:
            try:
                if not _is_installed(module):
                    continue
                instrumentor = getattr(import_module(module), name)()
                if (
                    module.endswith("_v2")
                    and not import_module("opentelemetry.util.genai.utils").is_experimental_mode()
                ):
                    reasons.append(f"{_package(module)} needs opentelemetry-util-genai 1.0 or 1.1.")
                    continue  # it would record requests without their messages
                hook = {"completion_hook": _CompletionHook(self._on_content)} if module.endswith("_v2") else {}
                instrumentor.instrument(tracer_provider=PRIVATE_PROVIDER, **hook)
            except Exception as error:  # its version does not fit the client, or the packages that it needs
                _log.debug("The instrumentation %s cannot be used", module, exc_info=True)
                reasons.append(f"{_package(module)} is installed, but fails: {error}.")
                continue
            if instrumentor.is_instrumented_by_opentelemetry:
                self._active.append(instrumentor)
                return
            reasons.append(f"{_package(module)} is installed, but not for this version of {client}.")
        names = " or ".join(_package(module) for module, _ in _KNOWN[client])
        self._missing[client] = " ".join(
            [f"Requests of the package {client} are not shown. Install {names}.", *reasons]
        )


def _package(module: str) -> str:
    return module.replace(".", "-").replace("_", "-")


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # a package around it is not installed
        return False


def _is_active(module: str, name: str) -> bool:
    instrumentor = getattr(sys.modules.get(module), name, None)
    return instrumentor is not None and bool(instrumentor().is_instrumented_by_opentelemetry)


class _CompletionHook:
    """Gets the messages of a request whether or not they may be exported (opentelemetry-util-genai, CompletionHook)."""

    def __init__(self, on_content: Callable[[Any, Mapping[str, Any]], None]) -> None:
        self._on_content = on_content

    def on_completion(
        self, *, inputs: Any, outputs: Any, system_instruction: Any, span: Any = None, **others: Any
    ) -> None:
        """Takes the messages of a request that has ended."""
        given = {
            "gen_ai.system_instructions": system_instruction,
            "gen_ai.input.messages": inputs,
            "gen_ai.output.messages": outputs,
        }
        self._on_content(
            span, {name: json_text(list(map(dataclasses.asdict, each))) for name, each in given.items() if each}
        )
