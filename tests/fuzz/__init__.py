"""Coverage-guided fuzzing: bytes that nobody thought of, held against the laws.

    inputs.py    from bytes to what a target reads, and the cuts
    oracles.py   the laws, as functions that fail
    targets.py   what is fuzzed: a table of names, checks, seeds and words
    corpus.py    where the seeds come from
    found.py     what was found once
    running.py   libFuzzer (atheris) in processes of its own
    __main__.py  the command: ``./dev fuzz [TARGET …] [--seconds N]``

A target is a function of bytes that returns, or raises: so each runs without atheris too, over seeds and over all that
was ever found.
"""
