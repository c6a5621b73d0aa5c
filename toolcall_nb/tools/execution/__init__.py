"""Running tools: one call or several in parallel, with time limits.

runner.py      `run_tool`: one call, from arguments to its `Outcome`
parallel.py    `run_together` and `RunningJobs`: several calls, each in a thread
workers.py     `run_in_worker`: a call in a thread that can be left behind; generators and async tools
deadlines.py   the time that a call has, and the signal that ends it in the main thread
"""
