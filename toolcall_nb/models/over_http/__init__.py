"""Models behind a URL, and what else is read over HTTP.

address.py      what an address is, and how it is shown
model.py        `HttpModel`: a server that speaks any of the wires, as a model
bodies.py       what it is asked; exchange.py: the asking, the coming back, the stop
answer.py       bytes of an answer to events; stream.py: the event streams among them
fetched.py      what is at an address, for `toolcall_nb.show`
responses.py    responses of httpx, requests and urllib that somebody else has asked for

httpx is imported when something is asked.
"""

from __future__ import annotations

__all__: list[str] = []
