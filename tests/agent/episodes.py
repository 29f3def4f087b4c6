"""Writes traces of episodes from records, for tests of code that reads traces."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from PIL import Image

from agent.config import RunConfig
from agent.run.run_store import Job, Manifest, RunFolder
from envs.core.action_place import ActionPlace
from envs.core.actions import Action, ActionResult, Click, Status, Stop
from envs.core.grounding import Grounding
from envs.core.notes import Note, Notebook
from envs.core.tasks import Milestone, MilestoneCheck, Score, TaskRef
from envs.core.trace import (
    Call,
    Commit,
    ElementKeyRecord,
    Failure,
    Flip,
    Footer,
    Header,
    Intent,
    ObservationRecord,
    Outcome,
    PlanRecord,
    Rating,
    Timings,
    Totals,
)
from envs.core.trace_store import BlobStore, TraceWriter

AT = "2026-01-01T00:00:00Z"


@dataclass(frozen=True)
class Play:
    """Specification of one episode."""

    task: str = "login-user"
    seed: int = 0
    attempt: int = 1
    outcome: Outcome | None = "success"
    """None writes no footer."""
    z: Sequence[Sequence[bool]] = ((False, False), (True, False), (True, True))
    """Milestone flags before each step, then at the end."""
    actions: Sequence[Action] = (Click(ref=1), Click(ref=2))
    checks: Sequence[bool] | None = None
    failure: Failure | None = None
    text: str = "words"
    """Text of every page and every model answer."""
    policy: str = "embedded"
    picture: bytes | None = None
    box: tuple[float, float, float, float] | None = None
    groundings: tuple[Grounding, ...] = ()
    """Of every action."""
    tokens: int = 10
    config: dict[str, object] = field(default_factory=dict[str, object])

    @property
    def job(self) -> Job:
        return Job(TaskRef(suite="miniwob", name=self.task, seed=self.seed), self.attempt)


def write_run(folder: Path, plays: Sequence[Play]) -> RunFolder:
    """Writes a run folder with *plays*. The run id is the folder's name."""
    run = RunFolder(folder)
    names = tuple(dict.fromkeys(play.task for play in plays))
    seeds = tuple(dict.fromkeys(play.seed for play in plays))
    config = RunConfig(attempts=max((play.attempt for play in plays), default=1))
    run.create(
        Manifest(
            run_id=folder.name, created_at=AT, config=config, suite="miniwob", names=names, seeds=seeds, versions={}
        )
    )
    for play in plays:
        write_episode(run, play)
    return run


def write_episode(run: RunFolder, play: Play) -> Path:
    blobs = BlobStore(run.blobs)
    path = run.trace(play.job.episode_id)
    milestones = tuple(Milestone(id=f"m{k}", text=f"{play.text} {k}") for k in range(1, len(play.z[-1]) + 1))
    with TraceWriter(path, blobs) as trace:
        trace.append(
            Header(
                run_id=run.path.name,
                episode_id=play.job.episode_id,
                task=play.job.task,
                attempt=play.attempt,
                instruction=play.text,
                category="form",
                reference_milestones=milestones,
                config={"policy": play.policy, **play.config},
                versions={},
                started_at=AT,
            )
        )
        trace.append(PlanRecord(step=1, cause="initial", milestones=milestones, planner="reference"))
        for place, action in enumerate(play.actions):
            trace.append(_intent(blobs, play, place, action))
            result = ActionResult(status=Status.OK, message=play.text)
            trace.append(Commit(step=place + 1, result=result, timings=Timings(execute=0.5), at=AT))
        if play.outcome is not None:
            trace.append(_footer(play, play.outcome))
    return path


def png(width: int, height: int) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (width, height), "white").save(out, "PNG")
    return out.getvalue()


def _intent(blobs: BlobStore, play: Play, place: int, action: Action) -> Intent:
    prompt = blobs.put_json([{"role": "user", "text": play.text, "images": []}])
    target = ElementKeyRecord(ref=1, frame="", role="button", name=play.text, ordinal=0, digest="0" * 8)
    return Intent(
        step=place + 1,
        seen=ObservationRecord(
            url=play.text,
            title=play.text,
            digest=f"{place:016d}",
            text_blob=blobs.put_text(play.text),
            keys_blob=blobs.put_text("[]"),
            controls_total=1,
            screenshot_blob=blobs.put(play.picture) if play.picture else None,
            viewport=(400, 300) if play.picture else None,
        ),
        rating=_rating(play, place),
        action=action,
        raw=play.text,
        notes=(play.text,),
        notebook=Notebook(notes=(Note(number=1, text=play.text),)),
        place=ActionPlace(where=play.text) if play.box else None,
        target=None if isinstance(action, Stop) else target,
        target_box=play.box,
        groundings=play.groundings,
        calls=(Call(role="policy", model=play.policy, prompt_blob=prompt, completion=play.text),),
        at=AT,
    )


def _rating(play: Play, place: int) -> Rating:
    z = tuple(play.z[place])
    before = tuple(play.z[place - 1]) if place else (False,) * len(z)
    flips = tuple(
        Flip(milestone=f"m{k}", achieved=now, evidence=play.text)
        for k, (old, now) in enumerate(zip(before, z, strict=True), 1)
        if old != now
    )
    return Rating(z=z, flips=flips, source="state")


def _footer(play: Play, outcome: Outcome) -> Footer:
    failed = Failure(category="other", key_step=1, reason=play.text) if outcome in ("failure", "broken") else None
    won = outcome == "success"
    score = Score(status="success" if won else "failure", reward=float(won), evidence=play.text)
    return Footer(
        outcome=outcome,
        ended_by="stop",
        judged_by="checker" if outcome in ("success", "failure") else "none",
        score=score if outcome in ("success", "failure") else None,
        answer=play.text,
        rating=_rating(play, len(play.z) - 1),
        milestone_checks=None
        if play.checks is None
        else tuple(MilestoneCheck(achieved=met, evidence=play.text) for met in play.checks),
        failure=play.failure or failed,
        totals=Totals(steps=len(play.actions), seconds=0.5 * len(play.actions), tokens_in=play.tokens, tokens_out=2),
        at=AT,
    )
