"""``%%toolchat`` and ``%toolchat``."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from IPython.core.error import UsageError as ShellUsageError
from IPython.core.magic import Magics, line_cell_magic, magics_class, no_var_expand
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring

from toolcall_nb.core.deprecated_names import renamed_members
from toolcall_nb.core.dialect_names import DIALECTS as TEXT_DIALECTS
from toolcall_nb.errors import ToolcallError, UsageError, cell_traceback
from toolcall_nb.notebook.hooks import Hooks

if TYPE_CHECKING:
    from toolcall_nb.approvals import ApprovalMode
    from toolcall_nb.core.transcript import Transcript
    from toolcall_nb.notebook.conversations import NotebookThreads
    from toolcall_nb.notebook.serve_command import Serving

__all__ = ["COMMANDS", "DIALECTS", "OPTIONS", "SWITCH", "Interrupted", "ToolchatMagics"]

DIALECTS = ("native", *TEXT_DIALECTS)
SWITCH = ("on", "off")

__getattr__ = renamed_members(__name__, {"APPROVALS": "toolcall_nb.approvals.APPROVAL_MODES"})


def _text(value: str) -> str:
    """A value without the quotes that IPython's splitting leaves on."""
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"" else value


def _speed(value: str) -> float:
    speed = float(value)
    if not speed >= 0:
        raise ValueError(value)
    return speed


def _steps(value: str) -> int:
    steps = int(value)
    if steps < 1:
        raise ValueError(value)
    return steps


def _retries(value: str) -> int:
    retries = int(value)
    if retries < 0:
        raise ValueError(value)
    return retries


# argparse says: invalid speed value: 'x'
_speed.__name__, _steps.__name__, _retries.__name__ = "speed", "number of steps", "number of retries"


@magics_class
class ToolchatMagics(Magics):
    """The magics, with what they remember: the threads."""

    def __init__(self, shell: Any) -> None:
        super().__init__(shell)
        self._threads: NotebookThreads | None = None
        self.hooks = Hooks(shell)
        self._serving: Serving | None = None

    @property
    def threads(self) -> NotebookThreads:
        """The chats by name; made when they are first needed."""
        if self._threads is None:
            from toolcall_nb.notebook.conversations import NotebookThreads

            self._threads = NotebookThreads(self.shell)
        return self._threads

    def close(self) -> None:
        """Stop what runs, take the hooks out, and load no pictures any more; the magics are going away."""
        from toolcall_nb.redaction.saved_output import allow_pictures

        self.hooks.remove()
        allow_pictures([])
        if self._threads is not None:
            self._threads.stop()
        if self._serving is not None:
            self._serving.stop()

    @magic_arguments("toolchat")
    @argument("command", nargs="*", help="of %%toolchat alone: what to do, see above")
    @argument(
        "--model",
        "-m",
        type=_text,
        help="who answers: a name, or a variable that holds a model or a function of the messages (default: mock)",
    )
    @argument("--tools", "-t", type=_text, help="tools or functions of yours: a,b (default: all made with @tool)")
    @argument(
        "--dialect",
        help=f"how the model writes a call: native (its own way), or in its text as {', '.join(TEXT_DIALECTS)}",
    )
    @argument("--approve", help="auto: run what is called; ask: ask me first; never: deny it (default: auto)")
    @argument("--once", action="store_true", default=None, help="the results of the calls take the reply's place")
    @argument("--max-steps", type=_steps, metavar="N", help="requests to the model in one turn, at most (default: 10)")
    @argument(
        "--retries", type=_retries, metavar="N", help="tries of a request that failed before it began (default: 2)"
    )
    @argument("--system", type=_text, metavar="TEXT", help="instructions for the model")
    @argument("--new", action="store_true", help="forget what was said before in this thread")
    @argument(
        "--thread",
        type=_text,
        metavar="NAME",
        help="the conversation of this cell (default: the one set with %%toolchat thread)",
    )
    @argument("--background", action="store_true", help="do not block the notebook; %%toolchat stop ends it")
    @argument("--replay", action="store_true", help="the cell is a transcript: play it as if it were live")
    @argument("--speed", type=_speed, metavar="X", help="of the mock and of replays; 2: twice as fast, 0: no waits")
    @argument("--render", action="store_true", help="the cell is a transcript: show it")
    @no_var_expand
    @line_cell_magic
    def toolchat(self, line: str, cell: str | None = None) -> None:
        """Chat with a model that calls your tools.

        As a cell magic, the cell is the prompt. {name} stands for a variable of the notebook, also {df.shape} and
        {rows[0]}; {{ and }} are braces. The chat is the variable `chat`: chat.transcript, chat.calls["call_1"].output.

            %%toolchat --tools weather
            What is the weather in {city}?

        As a line magic it says what is set, or does one of these:

            %toolchat model [NAME]         what answers from now on
            %toolchat config [NAME=VALUE]  base_url, key (the name of a variable), temperature …; reset unsets all;
                                           native_tools=["web_search"] has the provider run tools of its own
            %toolchat tools [a,b | all]    what may be called from now on; alone, what there is
            %toolchat approve [MODE]       auto, ask or never from now on; ask forgets what was allowed
            %toolchat thread [NAME]        the conversation to go on with
            %toolchat new                  forget what was said in this thread
            %toolchat stop [THREAD]        end what runs in the background
            %toolchat show [THREAD|CALL]   put a transcript, or one call, into this cell
            %toolchat hooks [on|off]       whether replies and streams of SDKs display as transcripts
            %toolchat code [CALL]          put a call into a new cell, as Python
            %toolchat save FILE            write the thread's transcript: .md, .json, .jsonl, or .html to look at
            %toolchat load FILE            go on from a transcript; what was said before becomes another thread
            %toolchat replay FILE          play a transcript as if it were live
            %toolchat images [HOST … |off] which hosts may serve the pictures in a text; they learn who reads, and when
            %toolchat secrets [on|off]     what is masked where it is saved; add NAME: the value of a variable as well
            %toolchat serve [PORT | stop]  a chat with what is set here, over HTTP, for this machine
        """
        with _clear_errors():
            options = _parsed(line)
            if cell is None:
                self._do(options)
            else:
                self._chat(options, cell)

    # The cell magic

    def _chat(self, options: Namespace, cell: str) -> None:
        _check(options)
        text = cell.strip("\n")
        if options.render:
            from toolcall_nb.notebook.show import show

            show(self._transcript(text))
        elif options.replay:
            self.threads.replay(self._transcript(text), options)
        else:
            self.threads.ask(self._prompt(text), options)

    def _prompt(self, text: str) -> str:
        from toolcall_nb.notebook.interpolation import fill

        lines = [line for line in text.splitlines() if line.strip()]
        if not lines:
            raise UsageError("The cell has no prompt: write it below the line with %%toolchat.")
        if all(line.lstrip().startswith("#") for line in lines):
            raise UsageError("The cell has no prompt, only comments.")
        return fill(text.strip(), self.threads.namespace)

    def _transcript(self, text: str) -> Transcript:
        from toolcall_nb.runs.transcript_files import read_markdown

        return read_markdown(text, "the cell's text")

    # The line magic

    def _do(self, options: Namespace) -> None:
        name, *rest = options.command or [""]
        _check_line(name, options)
        if not name:
            print(self.threads.summary())
            return
        do = COMMANDS.get(name)
        if do is None:
            raise UsageError(f"%toolchat has no command {name!r}. There are: {', '.join(COMMANDS)}. See %toolchat?")
        do(self, " ".join(map(_text, rest)), options)

    def _model(self, name: str, _: Namespace) -> None:
        if name:
            self.threads.set_model(name)
        print(f"model: {self.threads.model_name()}")

    def _config(self, changes: str, _: Namespace) -> None:
        if changes:
            self.threads.configure(changes)
        print(self.threads.describe_config())

    def _hooks(self, wish: str, _: Namespace) -> None:
        if wish:
            _one_of("%toolchat hooks", wish, SWITCH)
            self.hooks.install() if wish == "on" else self.hooks.remove()
        print(f"hooks: {'on' if self.hooks.are_on else 'off'}")

    def _tools(self, names: str, _: Namespace) -> None:
        if names:
            self.threads.set_tools(names)
        print(self.threads.describe_tools())

    def _approve(self, mode: str, _: Namespace) -> None:
        if mode:
            self.threads.set_approve(_approval(mode))
        print(f"approve: {self.threads.approve()}")

    def _thread(self, name: str, _: Namespace) -> None:
        if name:
            self.threads.switch(name)
        print(self.threads.describe_threads())

    def _new(self, name: str, _: Namespace) -> None:
        self.threads.forget(name or None)

    def _stop(self, name: str, _: Namespace) -> None:
        if answer := self.threads.stop(name or None):
            print(answer)

    def _show(self, name: str, _: Namespace) -> None:
        from toolcall_nb.notebook.show import show

        show(self.threads.find(name))

    def _code(self, name: str, _: Namespace) -> None:
        self.threads.put_code(name)

    def _save(self, file: str, _: Namespace) -> None:
        from toolcall_nb.redaction.registered_secrets import saved_value
        from toolcall_nb.runs.transcript_files import check_writable, write_file

        path, name = _path(file, "save"), self.threads.current
        check_writable(path)
        kept, tally = saved_value(self.threads.chat().transcript)
        if not kept.messages and os.path.exists(path):
            raise UsageError(f"Nothing was said in the thread {name!r} yet, so {path} was left as it is.")
        write_file(kept, path)
        print(" · ".join(filter(None, (f"Saved the thread {name!r} to {path}", f"{tally}"))))

    def _load(self, file: str, _: Namespace) -> None:
        from toolcall_nb.runs.transcript_files import read_transcript

        path = _path(file, "load")
        print(self.threads.load(read_transcript(path), f"{path}"))

    def _replay(self, file: str, options: Namespace) -> None:
        from toolcall_nb.runs.transcript_files import read_transcript

        self.threads.replay(read_transcript(_path(file, "replay")), options)

    def _images(self, words: str, _: Namespace) -> None:
        from toolcall_nb.redaction.saved_output import allow_pictures, picture_hosts

        if words:
            allow_pictures([] if words == "off" else words.split())
        print(f"images: {', '.join(sorted(picture_hosts())) or 'none is loaded; a link stands in its place'}")

    def _secrets(self, words: str, _: Namespace) -> None:
        from toolcall_nb.notebook.secrets_command import do

        print(do(words, self.threads.chat().transcript, self.threads.namespace))

    def _serve(self, words: str, _: Namespace) -> None:
        from toolcall_nb.notebook.serve_command import Serving

        self._serving = self._serving or Serving()
        print(self._serving.do(words, self.threads.sample()))


COMMANDS: dict[str, Callable[[ToolchatMagics, str, Namespace], None]] = {
    "model": ToolchatMagics._model,
    "config": ToolchatMagics._config,
    "tools": ToolchatMagics._tools,
    "approve": ToolchatMagics._approve,
    "thread": ToolchatMagics._thread,
    "new": ToolchatMagics._new,
    "stop": ToolchatMagics._stop,
    "show": ToolchatMagics._show,
    "hooks": ToolchatMagics._hooks,
    "code": ToolchatMagics._code,
    "save": ToolchatMagics._save,
    "load": ToolchatMagics._load,
    "replay": ToolchatMagics._replay,
    "images": ToolchatMagics._images,
    "secrets": ToolchatMagics._secrets,
    "serve": ToolchatMagics._serve,
}
"""What comes after ``%toolchat``."""

OPTIONS = tuple(action.option_strings[0] for action in ToolchatMagics.toolchat.parser._actions if action.option_strings)
"""The long names of the options."""


def _parsed(line: str) -> Namespace:
    try:
        options: Namespace = parse_argstring(ToolchatMagics.toolchat, line)
    except ValueError as error:  # a quotation that is not closed
        raise UsageError(f"The line {line!r:.200} cannot be read: {error}.") from None
    return options


def _check(options: Namespace) -> None:
    """What argparse cannot say as well."""
    if options.command:
        raise UsageError(f"{options.command[0]!r} is no option of %%toolchat. The prompt goes below this line.")
    if options.approve is not None:
        _approval(options.approve, "--approve")
    _one_of("--dialect", options.dialect, DIALECTS)
    if options.render and options.replay:
        raise UsageError("--render shows a transcript, --replay plays it: choose one.")


def _check_line(command: str, options: Namespace) -> None:
    """Refuse the options that only a cell takes: to leave them out silently would look as if they were set."""
    taken = ("command", "speed", "background") if command == "replay" else ("command",)
    unset = (None, False)
    given = [
        name for name, value in vars(options).items() if name not in taken and not any(value is no for no in unset)
    ]
    if given:
        name = given[0]
        hint = f" For all cells that follow: %toolchat {name} …" if name in COMMANDS else ""
        raise UsageError(f"--{name.replace('_', '-')} is an option of a cell, %%toolchat.{hint} See %toolchat?")


def _one_of(option: str, value: str | None, known: tuple[str, ...]) -> None:
    if value is not None and value not in known:
        raise UsageError(f"{option} {value!r} is not known. There are: {', '.join(known)}.")


def _approval(mode: str, option: str = "%toolchat approve") -> ApprovalMode:
    from toolcall_nb.approvals import APPROVAL_MODES  # imports msgspec, which loading the extension does not need

    _one_of(option, mode, APPROVAL_MODES)
    return cast("ApprovalMode", mode)


def _path(file: str, command: str) -> Path:
    if not file:
        raise UsageError(f"%toolchat {command} needs the name of a file.")
    try:
        return Path(file).expanduser()
    except RuntimeError as error:  # ~somebody
        raise UsageError(f"{file} is no path: {error}") from None


class Interrupted(KeyboardInterrupt):
    """An interrupt of a magic. IPython prints one line for it."""

    def _render_traceback_(self) -> list[str]:
        return ["KeyboardInterrupt"]


@contextmanager
def _clear_errors() -> Iterator[None]:
    """Leaves our frames out of what is printed when a magic fails.

    What we raise on purpose is a usage error of IPython's, one line on stderr. What an object of the user's raises
    while the magic looks at it (a property, ``__str__``) keeps the frames of that object.
    """
    try:
        yield
    except ToolcallError as error:
        from toolcall_nb.redaction.registered_secrets import saved_text

        raise ShellUsageError(saved_text(str(error))) from None
    except ShellUsageError:
        raise
    except KeyboardInterrupt:
        raise Interrupted from None
    except Exception as error:
        with suppress(AttributeError):  # an exception may have no attributes of its own
            error._render_traceback_ = partial(cell_traceback, error)  # type: ignore[attr-defined]
        raise
