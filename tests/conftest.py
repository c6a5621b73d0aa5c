"""What all tests share: one deterministic hypothesis profile."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# No deadline: a test never asserts a time. Derandomized where a red run must be the change's own fault;
# HYPOTHESIS_PROFILE=search looks for new counterexamples, and longer.
settings.register_profile(
    "steady",
    deadline=None,
    derandomize=True,
    database=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile("search", parent=settings.get_profile("steady"), derandomize=False, max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))
