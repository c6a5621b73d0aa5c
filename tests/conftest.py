"""What all tests share: one deterministic hypothesis profile, and nobody's own Jupyter settings."""

from __future__ import annotations

import asyncio
import gc
import signal
from collections.abc import Generator, Iterator
from contextlib import contextmanager

import pytest
from hypothesis import HealthCheck, settings

from tests.support.profile import PROFILE

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
settings.load_profile(PROFILE)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collects the tests without garbage collection.

    A finalizer that runs while ``ast.parse`` builds its tree, and parses something itself, makes CPython up to 3.11.7
    raise ``SystemError: AST constructor recursion depth mismatch`` (python/cpython#106905). It also saves time, as does
    ``gc.freeze``: what was imported stays to the end.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(scope="session", autouse=True)
def _sigint_is_heard() -> None:
    """Tests send themselves a Ctrl+C, which a process that was started with ``nohup`` or by a script ignores."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def _nobodys_settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Kernels start without the startup files, the kernels and the configuration of whoever runs the tests."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"):
            patch.setenv(name, str(home / name.lower()))
        yield


@contextmanager
def _no_running_loop(item: pytest.Item) -> Iterator[None]:
    """Between two steps of an open browser its loop passes for the running one of this thread.

    Not in tests without a browser, nor in what they are set up with.
    """
    if "browser" in item.path.parts:
        yield
        return
    loop = asyncio._get_running_loop()
    asyncio._set_running_loop(None)
    try:
        yield
    finally:
        asyncio._set_running_loop(loop)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, object, object]:
    with _no_running_loop(item):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    with _no_running_loop(item):
        return (yield)
