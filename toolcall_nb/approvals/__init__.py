"""Approvals: who is asked whether a call may run, what was allowed for longer, and the check of edited arguments."""
