"""A run while it goes on, as any page is told of it: a notebook's widget, or a page of a server.

`document.LiveDocument` makes numbered steps of the events, a `pacer.Pacer` lets them go at the pace of a display, and
`toolcall_nb.approvals.page` waits for a person's answer.
"""
