"""The notebook's face: the magic, the live widget, and what a finished run leaves in its cell.

    extension.py      load and unload
    magic.py          %%toolchat and %toolchat; threads.py, toolbox.py, interpolation.py, completion.py serve it
    running.py        one run: events from a chat or a replay, shown by a face
    place.py          what the place allows; faces.py: a widget, one static display, or a terminal
    live.py           the live face; document.py numbers the steps, pacer.py paces them, widget.py carries them
    asking.py         may this call run? what a page is asked, and what its answer means
    progress.py       what goes on, in words; clocks.py: for how long
    static/           the page's side: one ES module and a little CSS
    show.py           put a finished transcript into a cell

Nothing here is imported by `import toolcall_nb`; ipywidgets and anywidget are imported by the first live run.
"""
