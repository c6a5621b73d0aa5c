"""Models behind a URL, and responses over HTTP.

model.py            `HttpModel`: a server that speaks any of the wires, as a model
request_bodies.py   the bodies of its requests
exchange.py         one request and its response, with reconnections; URLs, and `fetch_events` for `toolcall_nb.show`
response_body.py    the body of a response as events; stream.py: server-sent events
responses.py        responses of httpx, requests and urllib that the user holds

httpx is imported when a request is sent.
"""

from __future__ import annotations

__all__: list[str] = []
