"""Progress reports: every step to a watcher, one line per minute to a log."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import TrainerControl, TrainerState, TrainingArguments

from models.embedded import embedded_dir
from tests.training.engine.token_rows import rows_of
from training.data.columns import Column
from training.engine import progress
from training.engine.annotate import score_completions, score_states
from training.engine.checkpoints import load_policy
from training.engine.critic_model import Critic
from training.engine.progress import Lines, ReportSteps, duration
from training.engine.settings import Compute, Optimization
from training.engine.sft import SupervisedJob, supervised
from training.engine.stage_jobs import StageJob, launch, write_job

torch.set_num_threads(1)
COMPUTE = Compute(cpu=True, threads=1)
HOW = Optimization(learning_rate=1e-3, batch_rows=2, epochs=2)
Reports = list[tuple[str, int, int, str | None]]


@pytest.mark.parametrize("kind", ["stage", "fine-tuning"])
def test_the_start_and_every_step_are_reported_with_the_previous_loss(tmp_path: Path, kind: str) -> None:
    reports: Reports = []
    rows = rows_of(6, longest=20)

    def watch(stage: str, step: int, steps: int, note: str | None, /) -> None:
        reports.append((stage, step, steps, note))

    if kind == "stage":
        job = StageJob(kind="value", start=embedded_dir(), optimization=HOW, compute=COMPUTE)
        write_job(tmp_path / "value-fold-1", job, rows, {Column.TARGET: [0.5] * len(rows)})
        launch(tmp_path / "value-fold-1", watch=watch)
    else:
        supervised(SupervisedJob(start=embedded_dir(), optimization=HOW, compute=COMPUTE), rows, tmp_path, watch=watch)
    name = "value-fold-1" if kind == "stage" else "fine-tuning"
    assert [entry[:3] for entry in reports] == [(name, step, 6) for step in range(7)]
    assert (reports[0][3], reports[1][3]) == (None, None), "nothing is reported before the first step has ended"
    notes = [note or "" for *_, note in reports[2:]]
    assert all(note.startswith("loss ") and float(note.removeprefix("loss ")) > 0 for note in notes)


def test_validation_reports_its_rows_and_is_no_part_of_the_remaining_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Scoring the start took minutes without a line, and was counted as the duration of the first steps."""
    reports: list[tuple[str, int, int]] = []
    lines, clock = list[str](), [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    log = Lines(lines.append)

    def watch(stage: str, step: int, steps: int, note: str | None, /) -> None:
        clock[0] += 600 if stage == "scoring answers" else 61
        reports.append((stage, step, steps))
        log(stage, step, steps, note)

    job = SupervisedJob(start=embedded_dir(), optimization=HOW, compute=COMPUTE)
    supervised(job, rows_of(6, longest=20), tmp_path, validation=rows_of(4, longest=20), watch=watch)
    scored = [step for stage, step, steps in reports if stage == "scoring answers" and steps == 4]
    assert scored.count(4) == 3, "the start and two epochs"
    assert [report for report in reports if report[0] == "fine-tuning"] == [("fine-tuning", n, 6) for n in range(7)]
    assert "about 4 min left" in next(line for line in lines if "fine-tuning: 2 of 6" in line)


@pytest.mark.parametrize(
    ("shown", "value", "note"),
    [("reward", 0.4125, "reward 0.412"), ("loss", -0.0001, "loss 0.000"), ("loss", -0.25, "loss -0.250")],
)
def test_a_note_has_the_relevant_number(tmp_path: Path, shown: str, value: float, note: str) -> None:
    """GRPO's loss is 0 except for the KL term; its progress bar used to show `loss -0.000`."""
    reports: Reports = []

    def watch(stage: str, step: int, steps: int, note: str | None, /) -> None:
        reports.append((stage, step, steps, note))

    callback = ReportSteps("GRPO", watch, shown)
    arguments, state, control = (
        TrainingArguments(str(tmp_path), use_cpu=True),
        TrainerState(max_steps=9),
        TrainerControl(),
    )
    callback.on_train_begin(arguments, state, control)
    callback.on_log(arguments, state, control, {"loss": -0.0, shown: value})
    state.global_step = 1
    callback.on_step_end(arguments, state, control)
    assert reports == [("GRPO", 0, 9, None), ("GRPO", 1, 9, note)]


def test_scoring_reports_finished_rows_after_every_packed_sequence() -> None:
    reports: Reports = []
    rows = rows_of(6, longest=20)
    policy, _ = load_policy(embedded_dir())

    def watch(title: str, done: int, total: int, note: str | None, /) -> None:
        reports.append((title, done, total, note))

    score_completions(policy.eval(), rows, 2 * max(map(len, rows)), watch)
    assert len(reports) > 1 and reports == sorted(reports) and reports[-1] == ("scoring actions", 6, 6, None)
    reports.clear()
    score_states(Critic.from_policy(embedded_dir()).eval(), rows, 1, watch)
    assert reports == [("scoring states", done, 6, None) for done in range(1, 7)]


class Clock:
    now = 1_000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    fake = Clock()
    monkeypatch.setattr(progress, "time", fake)
    return fake


def test_a_log_has_one_line_per_minute_with_the_remaining_time(clock: Clock) -> None:
    printed: list[str] = []
    lines = Lines(printed.append)
    for step in range(100, 110):  # resumed: steps of an earlier process do not count for the rate
        lines("actor", step, 200, "loss 0.250")
        clock.now += 25
    assert printed == [
        "  actor: 103 of 200, loss 0.250, about 40 min left",
        "  actor: 106 of 200, loss 0.250, about 39 min left",
        "  actor: 109 of 200, loss 0.250, about 38 min left",
    ]


def test_each_stage_has_its_own_pace_and_a_short_one_has_no_line(clock: Clock) -> None:
    printed: list[str] = []
    lines = Lines(printed.append)
    for stage, seconds in (("potential", 10.0), ("value", 30.0), ("value", 1.0)):
        for step in range(1, 4):
            lines(stage, step, 4, None)
            clock.now += seconds
    assert printed == ["  value: 3 of 4, about 30 s left"]


@pytest.mark.parametrize(
    ("seconds", "reports"), [(0.4, "0 s"), (29, "29 s"), (31, "1 min"), (3_540, "59 min"), (7_500, "2 h 05 min")]
)
def test_durations_are_readable(seconds: float, reports: str) -> None:
    assert duration(seconds) == reports


def test_a_launched_stage_writes_its_lines_to_stderr(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from training.engine.__main__ import work
    from training.engine.worker import carry_out

    monkeypatch.setattr(progress, "EVERY_S", 0.0)
    job = StageJob(kind="value", start=embedded_dir(), optimization=HOW, compute=COMPUTE)
    rows = rows_of(6, longest=20)
    write_job(tmp_path / "value", job, rows, {Column.TARGET: [0.5] * len(rows)})
    assert carry_out(work, [str(tmp_path / "value")]) == 0
    assert "  value: 5 of 6, loss" in capsys.readouterr().err
