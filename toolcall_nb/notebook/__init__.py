"""The notebook's face: the magic, the live widget, and what a finished run leaves in its cell.

    extension.py      load and unload
    magic.py          %%toolchat and %toolchat; options.py, interpolation.py, completion.py, threads.py serve it
    running.py        one run: events from a chat or a replay, shown by a face
    place.py          what the place allows; faces.py: a widget, one static display, or a terminal
    live.py           the live face; document.py numbers the steps, pacer.py paces them, widget.py carries them
    progress.py       what goes on, in words; footer.py: the line below a run
    static/           the page's side: one ES module and a little CSS
    show.py           put a finished transcript into a cell

Nothing here is imported by `import toolcall_nb`; ipywidgets and anywidget are imported by the first live run.
"""
