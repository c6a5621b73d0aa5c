"""A batch on executors: processes, and a local cluster of Dask. Jobs are sent as data."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from toolcall_nb import MockModel, register_secret, run_many
from toolcall_nb.batches import RowState
from toolcall_nb.errors import ModelError, UsageError
from toolcall_nb.models import with_faults
from toolcall_nb.models.config import Secret
from toolcall_nb.redaction.registered_secrets import REGISTERED
from toolcall_nb.runs.collection import read_many
from toolcall_nb.testing.faults import cut


@pytest.fixture(scope="module")
def pool() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as executor:
        yield executor


def make_weather() -> Callable[[str], str]:
    def weather(city: str) -> str:
        """The weather in a city."""
        return f"clear in {city}, says process {os.getpid()}"

    return weather


def test_runs_in_processes_call_functions_that_only_this_one_has(pool: ProcessPoolExecutor, tmp_path: Path) -> None:
    runs = run_many(
        ["How is Lyon?", "How is Oslo?"],
        tools=[make_weather()],
        repeat=2,
        executor=pool,
        speed=None,
        folder=tmp_path,
    )
    assert [row.state for row in runs.rows] == [RowState.DONE] * 4
    results = [f"{call.output}" for call in runs.calls]
    assert len(results) == 4
    assert all("clear in" in text and f"process {os.getpid()}" not in text for text in results)
    assert len(read_many(tmp_path)) == 4


def test_secrets_of_this_process_are_masked_in_what_another_one_answered(
    pool: ProcessPoolExecutor, tmp_path: Path
) -> None:
    register_secret("tulip-9000-secret")
    try:
        run_many("Use tulip-9000-secret.", executor=pool, folder=tmp_path, speed=None)
    finally:
        REGISTERED.clear()
    assert [path for path in tmp_path.iterdir() if "tulip" in path.read_text("utf-8")] == []


def test_a_model_that_is_told_to_wait_is_asked_again(pool: ProcessPoolExecutor, tmp_path: Path) -> None:
    flag = tmp_path / "asked"

    def limited(messages: Sequence[Any]) -> str:
        if not flag.exists():
            flag.touch()
            raise ModelError("Too many requests.", may_retry=True, retry_after=0.05)
        return "fine"

    runs = run_many(["a", "b"], models=limited, executor=pool, workers=1, retries=0)
    assert [row.state for row in runs.rows] == [RowState.DONE] * 2


def test_what_cannot_be_sent_is_said_before_anything_runs(pool: ProcessPoolExecutor) -> None:
    lock, key = threading.Lock(), Secret("tulip-9000-secret")

    def locked(city: str) -> str:
        """The weather in a city."""
        with lock:
            return city

    with pytest.raises(UsageError, match=r"The tool 'locked' cannot be sent to another process: .*lock"):
        run_many("a", tools=[locked], executor=pool)
    with pytest.raises(UsageError, match=r"The model 'keyed' cannot be sent .* Keep it in the environment"):
        run_many("a", models={"keyed": lambda messages: key.reveal()}, executor=pool)
    with pytest.raises(UsageError, match="The setting ask_approval cannot be sent"):
        run_many("a", ask_approval=lambda call: lock.locked(), executor=pool)


@pytest.mark.thorough
def test_a_process_that_dies_fails_its_runs_and_the_others_are_kept(tmp_path: Path) -> None:
    def model(messages: Sequence[Any]) -> str:
        if messages[-1]["content"] == "die":
            os._exit(1)
        return "fine"

    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        runs = run_many(["a", "die", "b"], models=model, executor=pool, workers=1, folder=tmp_path)
    assert [row.state for row in runs.rows] == [RowState.DONE, RowState.ERROR, RowState.ERROR]
    assert "BrokenProcessPool" in runs.rows[1].note
    assert len(runs) == 1


def test_a_pool_of_threads_runs_here() -> None:
    here = os.getpid()
    with ThreadPoolExecutor(2) as pool:
        runs = run_many(["a", "b"], models=lambda messages: f"{os.getpid() == here}", executor=pool)
    assert [run.transcript[-1].text for run in runs] == ["True", "True"]


def test_something_that_has_an_executor_is_taken() -> None:
    class Here(Executor):
        def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
            future: Future[Any] = Future()
            future.set_result(fn(*args, **kwargs))
            return future

    class View:
        executor = Here()

    (run,) = run_many("a", models={"m": MockModel(script=[])}, executor=View(), repeat=1)
    assert "script" in f"{run.transcript}{run.extra}"


@pytest.mark.thorough
def test_a_cluster_of_dask_goes_on_when_a_worker_is_killed(tmp_path: Path) -> None:
    distributed: Any = import_module("distributed")
    victim = tmp_path / "victim"

    def model(messages: Sequence[Any]) -> str:
        import signal

        if messages[-1]["content"] == "city 3" and not victim.exists():
            victim.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return f"fine in {os.getpid()}"

    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None, silence_logs=50
    )
    with cluster, distributed.Client(cluster) as client:
        prompts = [f"city {number}" for number in range(8)]
        runs = run_many(prompts, models={"m": model}, executor=client, folder=tmp_path / "runs")
        with_tools = run_many("How is Lyon?", tools=[make_weather()], executor=client.get_executor(), speed=None)
    assert victim.exists()
    assert [row.state for row in runs.rows] == [RowState.DONE] * 8
    assert len({run.transcript[-1].text for run in runs}) >= 2
    assert "clear in" in f"{with_tools[0].transcript.calls[0].output}"


def _cut(model: MockModel) -> Any:
    return with_faults(model, cut(1))


@pytest.mark.parametrize("executor_kind", ["threads", "processes", "an executor of threads"])
@pytest.mark.parametrize("wrap", [lambda model: model, _cut], ids=["plain", "with faults"])
def test_a_script_begins_anew_for_each_run(pool: ProcessPoolExecutor, executor_kind: str, wrap: Any) -> None:
    model = MockModel(script=[[("length", {"text": "four"})], "Done."])
    with ThreadPoolExecutor(2) as threads:
        executor = {"threads": None, "processes": pool, "an executor of threads": threads}[executor_kind]
        runs = run_many(["a", "b", "c"], models={"scripted": wrap(model)}, tools=[length], repeat=2, executor=executor)
    assert [(row.state, row.calls) for row in runs.rows] == [("done", 1)] * 6
    assert model.script is not None
    assert model.script.left == 2


def test_a_run_that_asks_more_often_than_the_script_has_replies_says_so() -> None:
    runs = run_many(["a", "b"], models=MockModel(script=[[("length", {"text": "four"})]]), tools=[length])
    assert [row.state for row in runs.rows] == ["error"] * 2
    assert all("has 1 reply, and this is request 2" in row.note for row in runs.rows)


def length(text: str) -> int:
    """Returns the length of a text."""
    return len(text)
