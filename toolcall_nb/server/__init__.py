"""A chat over HTTP, in anybody's wire: ``toolcall-nb serve``, and ``%toolchat serve`` from a notebook.

serving.py      a server that runs; command.py: on the command line
settings.py     what a server is made with, and its limits
app.py          the routes; guards.py: who may ask; requests.py: what is asked, in three shapes
threads.py      the conversations; runs.py, log.py: turns that run, and their events; store.py: threads on disk
outward.py      what of a turn leaves the server; connections.py: which come to an end
streaming.py    a run as the body of a response; feed.py: as the server's own page sees it
pages.py        that page; openapi.py: the routes as a document

Starlette and uvicorn are imported when a server is made.
"""

from __future__ import annotations

__all__: list[str] = []
