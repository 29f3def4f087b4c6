"""Assignment of jobs to workers: a worker keeps its task, because the page is loaded."""

from __future__ import annotations

from agent.run.run_executor import JobQueue
from agent.run.run_store import Job
from envs.core.tasks import TaskRef


def job(name: str, seed: int) -> Job:
    return Job(TaskRef(suite="miniwob", name=name, seed=seed), 1)


JOBS = [job(name, seed) for name in ("a", "b") for seed in (0, 1, 2)]


def test_one_worker_follows_the_order_of_the_run() -> None:
    queue = JobQueue(JOBS)
    assert [queue.take(0) for _ in JOBS] == JOBS
    assert queue.take(0) is None


def test_each_worker_stays_with_its_task() -> None:
    queue = JobQueue(JOBS)
    taken = [queue.take(worker) for worker in (0, 1, 1, 0)]
    assert taken == [job("a", 0), job("b", 0), job("b", 1), job("a", 1)]


def test_a_worker_without_a_task_helps_another_and_no_job_runs_twice() -> None:
    queue = JobQueue(JOBS)
    taken = [queue.take(worker) for worker in (0, 1, 2, 0, 1, 2, 0)]
    assert taken[2] == job("a", 1)
    assert sorted(entry.episode_id for entry in taken if entry) == sorted(entry.episode_id for entry in JOBS)
    assert taken[-1] is None
