"""A chat over HTTP, in any wire: ``toolcall-nb serve``, and ``%toolchat serve`` in a notebook.

serving.py             runs a server; command.py: the command line; connection_limits.py
proxied_address.py     where a browser reaches it through Jupyter
settings.py            the settings of a server, and its limits
app.py                 the routes; guards.py: access; path_prefix.py: the path below which a proxy offers the server
pages.py               the page and its files; responses.py: JSON and problems
request_types.py       the types of requests, which validate them and describe them in openapi.py
requests.py            the three shapes of a request, as one
conversations.py       the threads and their turns; histories.py: conversations that requests send
stores.py              where threads and turns are kept; store.py: threads on disk
redis_store.py         threads and turns in a Redis that several workers share; the other redis_*.py are its parts
turn.py                a turn as its readers see it; event_log.py: its events; page_feed.py: its steps for the page
served_run.py          a turn that runs here
streaming.py           a turn as the body of a response; public_view.py: without the server's insides

Starlette and uvicorn are imported when a server is made, redis when its store is one.
"""

from __future__ import annotations

__all__: list[str] = []
