"""The tools of an MCP server as tools of ours."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Awaitable, Callable, Iterable, Iterator
from types import TracebackType
from typing import Any, TypeVar

from toolcall_nb.core.events import Object
from toolcall_nb.errors import ToolcallError, UsageError
from toolcall_nb.tools.definition import Tool
from toolcall_nb.tools.failures import ToolFailed
from toolcall_nb.tools.mcp.connection import Connection, Lost, Tell
from toolcall_nb.tools.mcp.content import result_of
from toolcall_nb.tools.mcp.targets import LastWords, Target, clients, identity, label
from toolcall_nb.tools.results import Result
from toolcall_nb.tools.schema_arguments import SchemaArguments
from toolcall_nb.tools.schema_check import SchemaCheck, TooCostly

__all__ = ["McpServer", "ServerFailed", "mcp_tools"]

CONNECTING = 60.0
"""Seconds that a server has to start and to tell its tools."""

PAGES = 100
"""Pages of a list of tools that are read; a server that always has one more would never come to an end."""

_LAST_LINES, _LONGEST_LINE = 5, 300
"""How much of what a server wrote to its stderr, and of an error's own text, is told when it has failed."""

_CLOSED, _TIMED_OUT, _INVALID = -32000, -32001, -32600
"""``CONNECTION_CLOSED``, ``REQUEST_TIMEOUT`` and ``INVALID_REQUEST`` of the package ``mcp_types``."""

T = TypeVar("T")


class ServerFailed(ToolFailed, ToolcallError, ConnectionError):
    """An MCP server cannot be reached, has ended, or did not answer."""

    def _render_traceback_(self) -> list[str]:
        """What IPython shows in a cell: the message says all, and the frames are ours and those of the client."""
        return [f"{type(self).__name__}: {self}"]


def mcp_tools(
    target: Target, *, prefix: str | None = None, only: Iterable[str] | None = None, timeout: float | None = None
) -> McpServer:
    """Connect to a server of the Model Context Protocol; its tools are in ``tools``.

        with mcp_tools("npx -y @modelcontextprotocol/server-everything") as server:
            Chat(tools=Registry(server.tools))

    ``target`` is a command, as text or as a list of words (stdio), a URL (streamable HTTP, or else HTTP with SSE),
    or an object of the ``mcp`` package, such as `StdioServerParameters` with an environment. ``prefix`` is put
    before each name; ``only`` are the server's own names of the tools that are wanted; ``timeout`` is how many
    seconds a call may take. What a server asks back (sampling, elicitation, roots) is declined.

    Raises `UsageError` where a name is not there, or twice there, or cannot be a tool's; `ServerFailed` where the
    server cannot be reached; `MissingPackageError` without ``toolcall-nb[mcp]``.
    """
    return McpServer(target, prefix=prefix or "", only=None if only is None else tuple(only), timeout=timeout)


class McpServer:
    """A connection to an MCP server, made by `mcp_tools`.

    It ends at the end of a ``with`` block, by `close`, when nobody holds it or one of its tools any more, and with
    Python. A server that was lost is connected to again, once, at the next call.
    """

    def __init__(self, target: Target, *, prefix: str, only: tuple[str, ...] | None, timeout: float | None) -> None:
        self.name = label(target)
        self._identity = identity(target)
        self._timeout = timeout
        self._results = _Results(self.name)
        self._link = _Link(target, self.name)
        weakref.finalize(self, self._link.close)
        try:
            self.tools = tuple(self._tools(prefix, only))
        except BaseException:
            self.close()
            raise

    def __repr__(self) -> str:
        return f"<McpServer {self.name}: {', '.join(tool.name for tool in self.tools)}>"

    def __enter__(self) -> McpServer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the connection for good; calls fail from then on."""
        self._link.close()

    def call(self, name: str, arguments: Object) -> Result:
        """Call a tool by the server's own name. Its progress is printed, a line for each report.

        Raises `ToolFailed` with the server's text, `ServerFailed` where there is none.
        """

        results = self._results  # which the connection keeps: it must not hold the server

        async def work(client: Any, tell: Tell) -> Any:
            client.session.validate_tool_result = results.check

            async def progress(done: float, total: float | None, message: str | None) -> None:
                tell(_progress(done, total, message))

            return await client.call_tool(
                name, arguments, read_timeout_seconds=self._timeout, progress_callback=progress
            )

        return result_of(self._link.run(work))

    def _tools(self, prefix: str, only: tuple[str, ...] | None) -> Iterator[Tool]:
        described: dict[str, Any] = {}
        for tool in self._link.run(_listed):
            if tool.name in described:
                raise UsageError(f"{self.name} has two tools {tool.name!r:.100}, and a call could mean either.")
            described[tool.name] = tool
            if tool.output_schema is not None:
                self._results.schemas[tool.name] = SchemaCheck(tool.output_schema)
        for name in dict.fromkeys(described if only is None else only):
            if name not in described:
                raise UsageError(f"{self.name} has no tool {name!r:.100}. It has: {', '.join(described) or 'none'}.")
            yield self._tool(prefix + name, described[name])

    def _tool(self, name: str, described: Any) -> Tool:
        schema = {"type": "object", "properties": {}, **described.input_schema}
        return Tool(
            name=name,
            description=described.description or "",
            parameters=schema,
            function=_Call(self, described.name),
            signature=SchemaArguments(name, schema),
            origin=f"mcp {self._identity}: {described.name}",
            parallel=bool(described.annotations and described.annotations.read_only_hint),
        )


class _Call:
    """The function of one tool. It holds the server, which stays open as long as somebody may call."""

    def __init__(self, server: McpServer, name: str) -> None:
        self._server = server
        self.__name__ = name

    def __call__(self, /, **arguments: Any) -> Result:
        return self._server.call(self.__name__, arguments)


class _Results:
    """Checks results by the schemas that the server gave for them.

    It takes the place of the client's own check, which a hostile schema can make run without end.
    """

    def __init__(self, server: str) -> None:
        self._server = server
        self.schemas: dict[str, SchemaCheck] = {}

    async def check(self, name: str, result: Any) -> None:
        """Raises `ToolFailed` for a result that its own schema refuses, or whose schema costs too much."""
        if (schema := self.schemas.get(name)) is None:
            return
        try:
            problems = schema.problems(result.structured_content)
        except TooCostly:
            problems = ["the schema takes too long to check it by"]
        if problems:
            raise ToolFailed(f"the result of {name} is not as its own schema says: {problems[0]}")


class _Link:
    """The connection that a server has now; knows nothing of the server, which can be forgotten while it lives."""

    def __init__(self, target: Target, name: str) -> None:
        self._name = name
        self._words = LastWords()
        self._clients = clients(target, self._words)
        self._lock = threading.Lock()
        self._connection: Connection | None = None
        self._is_closed = False

    def run(self, work: Callable[[Any, Tell], Awaitable[T]]) -> T:
        """What ``work`` gives with a client that is connected now. Raises `ToolFailed`."""
        connection = self._connected()
        try:
            return connection.run(work, lambda line: print(line, flush=True))
        except Exception as error:
            failure = self._failure(connection, error)
        raise failure  # outside of the block: IPython writes out the group of errors that the client's tasks ended with

    def _failure(self, connection: Connection, error: Exception) -> ServerFailed:
        """What to say of an error of a call; a connection that is lost is closed."""
        if _is_lost(error):
            connection.close()
            return self._failed("is gone; the next call connects to it again", error)
        if getattr(error, "code", None) == _TIMED_OUT:
            return ServerFailed(f"{self._name} did not answer in time. Give it longer with mcp_tools(…, timeout=…).")
        return ServerFailed(f"{self._name} answers: {_words(error)}")

    def close(self) -> None:
        """End what there is, and connect no more."""
        self._is_closed = True
        if self._connection is not None:
            self._connection.close()

    def _connected(self) -> Connection:
        with self._lock:
            if self._is_closed:
                raise ServerFailed(f"The connection to {self._name} was closed. Connect again with mcp_tools(…).")
            if self._connection is None or not self._connection.is_open:
                self._connection = self._new_connection()
            return self._connection

    def _new_connection(self) -> Connection:
        try:
            connection = Connection(self._clients, CONNECTING)
        except Exception as error:
            failure = self._failed("cannot be reached", error)
        else:
            if self._is_closed:  # meanwhile, by another thread
                connection.close()
            return connection
        raise failure  # outside of the block, as in `run`

    def _failed(self, what: str, error: Exception) -> ServerFailed:
        last = [line[:_LONGEST_LINE] for line in self._words.text.splitlines()[-_LAST_LINES:]]
        return ServerFailed("\n".join([f"{self._name} {what} ({_words(error)}).", *last]))


async def _listed(client: Any, tell: Tell) -> list[Any]:
    """All tools of a server, as it describes them."""
    tools: list[Any] = []
    cursor: str | None = None
    for _ in range(PAGES):
        page = await client.list_tools(cursor=cursor)
        tools += page.tools
        cursor = page.next_cursor
        if cursor is None:
            break
    return tools


def _progress(done: float, total: float | None, message: str | None) -> str:
    """One report of progress as a line: ``3/10 resizing``."""
    share = f"{done:g}" if total is None else f"{done:g}/{total:g}"
    return f"{share} {message}" if message else share


def _is_lost(error: Exception) -> bool:
    code, text = getattr(error, "code", None), str(error)
    return isinstance(error, Lost) or code == _CLOSED or (code == _INVALID and text == "Session terminated")


def _words(error: BaseException) -> str:
    """What an error says, or the error that is behind it: the client's tasks wrap errors in groups."""
    if isinstance(error, BaseExceptionGroup):
        return _words(error.exceptions[0])
    if isinstance(error, Lost) and error.reason is not None:
        return _words(error.reason)
    first, *_ = str(error).strip().splitlines() or [type(error).__name__]
    return first[:_LONGEST_LINE]
