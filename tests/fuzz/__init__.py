"""Coverage-guided fuzzing of the package, with the laws as oracles.

    inputs.py    turns bytes into a target's input, and cuts it
    oracles.py   the laws, as functions that raise
    targets.py   the table of targets: names, checks, seeds and words
    corpus.py    the seeds
    findings.py  stored findings
    running.py   runs libFuzzer (atheris) in child processes
    __main__.py  the command: ``./dev fuzz [TARGET …] [--seconds N]``

A target is a function of bytes that raises if a law is broken. So targets also run without atheris, over the seeds and
the stored findings.
"""
