"""Display hooks: a cell's value that is a reply, messages or a stream of an SDK is displayed as a transcript.

`Hooks` registers formatters for the types by name. So no SDK is imported for them, and most of this package only when
there is something to display. A formatter of the user's own for the same type wins, whenever it was registered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from toolcall_nb.core.sdk_objects import SDK_REPLY_TYPES, SDK_STREAM_TYPES
from toolcall_nb.notebook.environment import Environment, find_environment

_PLAYED = ("stream", "async stream")
"""The kinds of streams that are played. Those that must be entered first are not: that would send a request."""

_PACKAGES = frozenset(module.partition(".")[0] for module, _ in SDK_REPLY_TYPES)
_IN_MESSAGES = frozenset({"role", "parts", "kind", "type", "lc"})
_IN_REPLIES = frozenset({"choices", "output", "content", "candidates", "message", "messages", "parts", "lc", "type"})
"""A dictionary without any of these keys is neither: this is decided before anything is imported."""

_BUILT_IN = (list, dict)


class Hooks:
    """The formatters of one shell; `install` and `remove` can be repeated."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._formatter_functions = (self._bundle, self._bundle_of_values, self._play, self._print_values)
        self.are_on = False

    def install(self) -> None:
        """Registers the formatters, except for types for which the user has one."""
        self.are_on = True
        for formatter, key, function in self._registrations():
            try:
                formatter.lookup_by_type(".".join(key))
            except KeyError:
                formatter.deferred_printers[key] = function

    def remove(self) -> None:
        """Removes our formatters, wherever IPython has moved them."""
        self.are_on = False
        for formatter in (self._formatters.mimebundle_formatter, self._formatters.ipython_display_formatter):
            for printers in (formatter.deferred_printers, formatter.type_printers):
                for key in [key for key, function in printers.items() if function in self._formatter_functions]:
                    del printers[key]

    @property
    def _formatters(self) -> Any:
        return self._shell.display_formatter

    def _registrations(self) -> Iterator[tuple[Any, tuple[str, str], Callable[..., Any]]]:
        bundles, displays = self._formatters.mimebundle_formatter, self._formatters.ipython_display_formatter
        yield from ((bundles, key, self._bundle) for key in SDK_REPLY_TYPES)
        yield from ((displays, key, self._play) for key, kind in SDK_STREAM_TYPES.items() if kind in _PLAYED)
        for cls in _BUILT_IN:
            yield bundles, (cls.__module__, cls.__name__), self._bundle_of_values
            yield displays, (cls.__module__, cls.__name__), self._print_values

    # IPython's formatters. One that makes bundles returns None to leave the object to the next formatter; one that
    # displays raises NotImplementedError.

    def _bundle(self, thing: Any) -> Any:
        if (users_formatter := self._users_formatter(self._formatters.mimebundle_formatter, thing)) is not None:
            return users_formatter(thing)
        return None if self._is_formatted(thing) else _bundle_of(thing)

    def _bundle_of_values(self, value: Any) -> Any:
        if (users_formatter := self._users_formatter(self._formatters.mimebundle_formatter, value)) is not None:
            return users_formatter(value)
        return _bundle_of(value) if _may_be_messages(value) and not self._is_formatted(value) else None

    def _print_values(self, value: Any) -> None:
        """Prints values in a terminal, where IPython would prefer its own text for lists to that of a bundle."""
        if (users_formatter := self._users_formatter(self._formatters.ipython_display_formatter, value)) is not None:
            users_formatter(value)
            return
        is_ours = (
            _may_be_messages(value)
            and find_environment(self._shell) in (Environment.TERMINAL, Environment.CONSOLE)
            and not self._is_formatted(value)
        )
        bundle = _bundle_of(value) if is_ours else None
        if bundle is None:
            raise NotImplementedError
        print(bundle["text/plain"])

    def _play(self, stream: Any) -> None:
        if (users_formatter := self._users_formatter(self._formatters.ipython_display_formatter, stream)) is not None:
            users_formatter(stream)
            return
        if self._is_formatted(stream):
            raise NotImplementedError
        try:
            from toolcall_nb.notebook.show import show

            show(stream)
        except Exception:
            _log_exception("A stream could not be shown; its plain form stands for it")
            raise NotImplementedError from None

    # The user's own formatters

    def _users_formatter(self, formatter: Any, thing: Any) -> Callable[[Any], Any] | None:
        """Returns the user's formatter that was registered by name after ours: IPython does not find it any more."""
        for cls in type(thing).__mro__:
            function: Callable[[Any], Any] | None = formatter.deferred_printers.get((cls.__module__, cls.__name__))
            if function is not None and function not in self._formatter_functions:
                return function
        return None

    def _is_formatted(self, thing: Any) -> bool:
        """Whether the user has any formatter for it: for a bundle, or for one kind such as HTML, LaTeX or text."""
        display = self._formatters
        every = (display.ipython_display_formatter, display.mimebundle_formatter, *display.formatters.values())
        return any(self._is_users(formatter, thing) for formatter in every)

    def _is_users(self, formatter: Any, thing: Any) -> bool:
        try:
            function = self._users_formatter(formatter, thing) or formatter.lookup(thing)
        except KeyError:
            return False
        from IPython.lib.pretty import _type_pprinters

        return function not in self._formatter_functions and function not in _type_pprinters.values()


def _may_be_messages(value: Any) -> bool:
    """Whether a list or a dictionary (but not a subclass) may hold messages, judged by its first item or its keys."""
    if type(value) is dict:
        return any(key in value for key in _IN_REPLIES)
    first = value[0] if type(value) is list and value else None
    if isinstance(first, dict):
        return any(key in first for key in _IN_MESSAGES)
    return str(type(first).__module__).partition(".")[0] in _PACKAGES


def _bundle_of(thing: Any) -> dict[str, str] | None:
    try:
        from toolcall_nb.adapters import SourceKind, events_of, recognise_source
        from toolcall_nb.core.transcript import Transcript
        from toolcall_nb.render.saved_output import saved_bundle

        source = recognise_source(thing)
        is_whole = source.kind is SourceKind.WHOLE
        return saved_bundle(Transcript.from_events(events_of(source))) if is_whole else None
    except Exception:
        _log_exception("A reply could not be shown; its plain form stands for it")
        return None


def _log_exception(message: str) -> None:
    from toolcall_nb.redaction.masked_logging import logger  # imports the rest of the room

    logger("toolcall_nb.notebook").exception(message)
