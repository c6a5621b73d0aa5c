"""Opens streams, replies and addresses, and yields their events.

player.py              any source as events: `play_events`, `events_of_items`
recognising.py         values, addresses and streams that hold a run, told apart
sdk_streams.py         streams and replies of SDKs, whether they must be entered, awaited or iterated
event_loop.py          asynchronous streams from synchronous code
reply.py               `Reply`: puts the events of a model's reply in order
http_exchange.py       one request and its response, with reconnections; `fetch_events` for `toolcall_nb.show`
http_response_body.py  the body of a response as events; also server-sent events over several connections
http_responses.py      responses of httpx, requests and urllib that the user holds
provider_errors/       errors of providers in words that help
"""
