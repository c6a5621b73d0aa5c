"""``toolcall-nb serve``."""

from __future__ import annotations

import os
import secrets
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from toolcall_nb.approvals import APPROVAL_MODES
from toolcall_nb.errors import UsageError

if TYPE_CHECKING:
    from toolcall_nb.server.settings import Limits, Settings

__all__ = ["TOKEN_VARIABLE", "add_options", "serve", "settings_of"]

TOKEN_VARIABLE = "TOOLCALL_NB_TOKEN"
"""Where the token may stand, so that no list of processes shows it."""

_ON_THE_LINE = {
    "runs": "turns at the same time",
    "readers": "streams that are read at the same time",
    "message": "characters of a message",
    "body": "bytes of a request",
    "turn_seconds": "seconds of a turn",
}


def add_options(parser: ArgumentParser) -> None:
    """What can be told to ``serve``."""
    parser.add_argument("--host", default="127.0.0.1", help="where to listen (%(default)s: this machine alone)")
    parser.add_argument("--port", type=int, default=8000, help="0 takes a free one (%(default)s)")
    parser.add_argument("--model", metavar="M", default="mock", help="who answers (%(default)s)")
    parser.add_argument("--models", metavar="M,…", default="", help="other models that a request may ask for")
    parser.add_argument(
        "--tools", metavar="MODULE:FUNCTION,…", default="", help="functions that may be called; also edit, show, bash"
    )
    parser.add_argument("--store", metavar="DIR", help="keep the threads there, as Markdown; else in memory")
    parser.add_argument("--system", metavar="TEXT", help="the system prompt")
    parser.add_argument("--dialect", metavar="D", default="native", help="how calls are written (%(default)s)")
    parser.add_argument(
        "--approve", choices=APPROVAL_MODES, default="auto", help="who is asked before a call (%(default)s)"
    )
    parser.add_argument("--token", metavar="T", help=f"demanded of each request; or ${TOKEN_VARIABLE}")
    parser.add_argument("--origin", metavar="URL", action="append", default=[], help="another origin that may ask")
    parser.add_argument(
        "--allow-host", metavar="NAME", action="append", default=[], help="a name of the server, beside loopback's"
    )
    parser.add_argument(
        "--no-masking", action="store_true", help="keep secrets as they are in stored threads and documents"
    )
    parser.add_argument("--max-steps", metavar="N", type=int, default=10, help="requests in a turn (%(default)s)")
    parser.add_argument("--speed", metavar="X", type=float, default=1.0, help="speed of the mock; 0 never waits")
    for name, about in _ON_THE_LINE.items():
        option = f"--max-{name.replace('_', '-')}"
        parser.add_argument(option, metavar="N", type=_positive, help=f"{about}, at most")


def serve(options: Namespace, tools: Callable[[str], Iterable[Any]]) -> int:
    """Serve until the end; ``tools`` finds what is named. The exit code."""
    from toolcall_nb.server.serving import Server

    settings, is_new = settings_of(options, tools)
    server = Server(settings, options.host, options.port)
    key = f"/#token={settings.token}" if is_new else ""
    called = ", ".join(settings.tools) or "no tools"
    print(f"Serving {', '.join(settings.models)} with {called} at {server.address}{key}", flush=True)
    server.run()
    return 0


def settings_of(options: Namespace, tools: Callable[[str], Iterable[Any]]) -> tuple[Settings, bool]:
    """What the options say, and whether the token is a new one, which nobody knows yet."""
    from toolcall_nb.server.settings import Settings, is_loopback

    names = [options.model, *filter(None, map(str.strip, options.models.split(",")))]
    given = os.environ.get(TOKEN_VARIABLE) if options.token is None else options.token
    if given is not None and not given.strip():
        source = "--token" if options.token is not None else f"The environment variable {TOKEN_VARIABLE}"
        raise UsageError(
            f"{source} is empty. Give a token; without the option and the variable, one is made where it is needed."
        )
    is_new = given is None and not is_loopback(options.host)
    if options.max_steps < 1:
        raise UsageError(f"--max-steps is at least 1, but is {options.max_steps}.")
    settings = Settings(
        models={name: name for name in names},
        tools=tools(options.tools),
        system=options.system,
        dialect=options.dialect,
        approval_mode=options.approve,
        max_steps=options.max_steps,
        speed=options.speed or None,
        store=options.store,
        token=secrets.token_urlsafe(24) if is_new else given,
        origins=tuple(options.origin),
        hosts=_hosts(options),
        masking=not options.no_masking,
        limits=_limits(options),
    )
    return settings, is_new


def _hosts(options: Namespace) -> tuple[str, ...]:
    """Where a token is demanded, a name says nothing more; unless names are given."""
    from toolcall_nb.server.settings import is_loopback

    if options.allow_host or is_loopback(options.host):
        return tuple(options.allow_host)
    return ("*",)


def _limits(options: Namespace) -> Limits:
    from toolcall_nb.server.settings import Limits

    given = {name: getattr(options, f"max_{name}") for name in _ON_THE_LINE}
    return Limits(**{name: value for name, value in given.items() if value is not None})


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


_positive.__name__ = "whole number above 0"  # argparse says: invalid whole number above 0 value
