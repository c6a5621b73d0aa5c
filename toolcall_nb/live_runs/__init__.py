"""A run while it goes on, without any front end: a notebook's widget and a server's page show the same.

run.py                 `Run` plays the events of a chat or a replay to whatever shows them, and can be stopped
document.py            `LiveDocument` makes numbered steps of the events, for pages
pacer.py               `Pacer` sends these steps no faster than a page can draw them
status.py              `RunStatus` describes what is going on, in words
"""
