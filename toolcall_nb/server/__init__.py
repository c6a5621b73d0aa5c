"""A chat over HTTP, in any wire: ``toolcall-nb serve``, and ``%toolchat serve`` in a notebook.

serving.py             runs a server, and limits its connections; command.py: the command line
proxied_address.py     where a browser reaches it through Jupyter
settings.py            the settings of a server, and its limits
app.py                 the routes, and the page with its files; responses.py: JSON and problems
middleware.py          access, and the path below which a proxy offers the server
request_types.py       the types of requests, which validate them and describe them in openapi.py
requests.py            the three shapes of a request, as one
conversations.py       the threads and their turns
store.py               where threads and turns are kept; threads on disk
redis_store.py         threads and turns in a Redis that several workers share; the other redis_*.py are its parts
turn.py                a turn as its readers see it, and its steps for the page; event_log.py: its events
served_run.py          a turn that runs here
streaming.py           a turn as the body of a response; public_view.py: without the server's insides

Starlette and uvicorn are imported when a server is made, redis when its store is one.
"""

from __future__ import annotations

__all__: list[str] = []
