"""The notebook front end: the magics, the live widget, and the output that a finished run leaves in its cell.

    extension.py          loads and unloads the IPython extension
    magic.py              ``%%toolchat`` and ``%toolchat``: options and errors
    commands.py           the table of the commands of ``%toolchat``; ``*_command.py`` hold the longer ones
    completion.py         completes options, commands and their arguments
    conversations.py      the chats of a notebook by name, and their runs
    model_settings.py     which model answers, and how it is asked; interpolation.py fills variables into a prompt
    environment.py        whether code runs in a notebook with a person, in one without, in a callback, or in a terminal
    run_displays.py       the display of a run for each of these, and who is asked whether a call may run;
                          live_display.py is the live one, on widget.py
    cell_turns.py         shows the turns that a cell runs by `Chat.send` and its like; shown_values.py keeps their
                          values from being displayed a second time
    first_run.py          lets the first run of a kernel start without delay
    early_messages.py     hands a page's messages to a run while the kernel is busy
    output_widgets.py     runs that are displayed in an Output widget of ipywidgets
    show.py               displays anything that holds a transcript, and streams
    hooks.py              displays replies and streams of SDKs that are the value of a cell

`import toolcall_nb` imports nothing of this room. ipywidgets and anywidget are imported by the first live run.
"""
