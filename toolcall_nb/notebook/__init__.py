"""The notebook front end: the magics, the live widget, and the output that a finished run leaves in its cell.

    extension.py          loads and unloads the IPython extension
    magic.py              ``%%toolchat`` and ``%toolchat``: options and errors
    commands.py           the table of the commands of ``%toolchat``; ``*_command.py`` hold the longer ones
    completion.py         completes options, commands and their arguments
    conversations.py      the chats of a notebook by name, and their runs
    model_settings.py     which model answers, and how it is asked; interpolation.py fills variables into a prompt
    environment.py        whether a cell runs in a notebook with a person, in one without, or in a terminal
    run_displays.py       the display of a run for each of these; live_display.py is the live one, on widget.py
    show.py               displays anything that holds a transcript; stream_display.py displays streams
    hooks.py              displays replies and streams of SDKs that are the value of a cell

`import toolcall_nb` imports nothing of this room. ipywidgets and anywidget are imported by the first live run.
"""
