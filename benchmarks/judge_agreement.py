"""How often an outcome judge agrees with the checker, on solved and on failed episodes of the sites.

    python -m benchmarks.judge_agreement play --out FOLDER [--episodes 100]
    python -m benchmarks.judge_agreement judge FOLDER --judge MODEL --verdicts FILE [--limit N] [--milestones] [--json]

`play` records episodes of the oracle, and a quarter more of an oracle that stops after some steps or gives another
answer. The task's checker labels all of them; a spoiled episode may still succeed. `judge` shows each recorded ending
to a judge (:mod:`judges.ending`) and compares its verdicts. MODEL is

* a model spec of a large model, such as `openai:gpt-4o` or `openai:NAME` with --base-url;
* `state`: success if the task's state checkers see all reference milestones done, a bound for any judge by milestones;
* `rated:MODEL`: success if the AutoRater of MODEL finds all reference milestones done, page by page (`rated:embedded`).

The last page of an episode is the one that its last action was chosen on. The milestones of these episodes were rated
by state checkers, which a judge does not have, so a model is shown them with --milestones only. Both commands continue
where they were stopped; FILE has a line for each verdict.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Protocol

from agent.config import RunConfig
from agent.episode.policy import ActionProposal, Turn
from agent.profiles.profile import profile_of_spec
from agent.run.discover_traces import EpisodeFile, discover_traces
from agent.run.oracle import SitesOracle
from agent.run.runner import resume, run_suite
from envs.core.action_languages import PROGRAM
from envs.core.actions import Stop
from envs.core.json_lines import json_lines
from envs.core.observation import Observation
from envs.core.past_actions import PastAction
from envs.core.record import Record
from envs.core.step_context import StepContext
from envs.core.tasks import TaskRef, TaskSelection
from envs.core.trace import Commit, Intent, Rating
from envs.core.trace_store import Trace
from envs.suites.sites.suite import task_infos
from judges.autorater import RaterSettings
from judges.base import Ending, OutcomeJudge, Progress
from judges.ending import EndedEpisode, complete_ending
from judges.registry import make_judge, make_rater
from judges.statistics import Estimate, proportion
from models.base import ModelError
from models.specs import make_model

SPOILED: Final = 1.25
"""Spoiled episodes for each one of the oracle: some of them succeed."""
LONGEST: Final = 6
"""A spoiled oracle stops after one to this many steps."""
RATED: Final = "rated:"


class VerdictRow(Record):
    """One verdict beside the checker's."""

    run_id: str
    episode_id: str
    task: str
    judge: str
    checker: bool
    verdict: bool | None
    """None: no usable answer."""
    reason: str
    tokens: int = 0


class Agreement(Record):
    """Shares with Wilson's 95 % interval. Episodes without a verdict agree with nobody."""

    judge: str
    episodes: int
    no_verdict: int
    agreement: Estimate
    on_successes: Estimate
    """Of the checker's successes, those that the judge calls so."""
    on_failures: Estimate
    precision: Estimate
    """Of the judge's successes, those that the checker calls so: the purity of the labels that training would keep."""
    tokens: int


class SpoiledOracle:
    """The oracle, which stops after some steps, or gives another answer where its own comes before that."""

    spec = "scripted"

    def __init__(self) -> None:
        self._oracle = SitesOracle(PROGRAM)

    async def propose(self, turn: Turn) -> ActionProposal:
        proposal = await self._oracle.propose(turn)
        if isinstance(proposal.action, Stop):
            return _stop(_other_answer(proposal.action.answer))
        return _stop(None) if turn.step > 1 + zlib.crc32(turn.task.id.encode()) % LONGEST else proposal


def _stop(answer: str | None) -> ActionProposal:
    action = Stop(answer=answer)
    return ActionProposal(action, PROGRAM.show(action))


def _other_answer(answer: str | None) -> str | None:
    """Another number or date of the same form, else other words."""
    if not answer:
        return answer
    changed = re.sub(r"\d", lambda digit: str((int(digit[0]) + 3) % 10), answer)
    return changed if changed != answer else f"Not {answer}"


async def play(out: Path, episodes: int, workers: int) -> None:
    """Plays or continues both runs."""
    names = [info.name for info in task_infos()]
    refs = [TaskRef(suite="sites", name=name, seed=seed) for seed in range(8) for name in names]
    for run_id, policy in (("oracle", None), ("spoiled", SpoiledOracle())):
        if (out / run_id / "run.json").exists():
            run = await resume(out / run_id, policy=policy)
        else:
            spec = "oracle" if policy is None else "scripted"
            config = RunConfig(policy=spec, workers=workers, fsync=False)
            picked = refs[: episodes if policy is None else round(SPOILED * episodes)]
            run = await run_suite(
                config, TaskSelection("sites", picked=tuple(picked)), out, run_id=run_id, policy=policy
            )
        if not run.complete:
            return


@dataclass(frozen=True, slots=True)
class Case:
    """A recorded episode that the checker judged."""

    file: EpisodeFile
    trace: Trace

    @property
    def success(self) -> bool:
        return self.trace.footer is not None and self.trace.footer.outcome == "success"

    @property
    def identity(self) -> tuple[str, str]:
        return self.trace.header.run_id, self.trace.header.episode_id


def cases(folders: Sequence[Path]) -> Iterator[Case]:
    for file in discover_traces(folders):
        trace = file.read()
        footer = trace.footer
        if footer is not None and footer.judged_by == "checker" and footer.outcome != "broken" and trace.steps:
            yield Case(file, trace)


def ending_of(case: Case, *, milestones: bool) -> Ending:
    """What the judge would have been shown at the end of the recorded episode."""
    trace, blobs = case.trace, case.file.blobs
    steps = [(step.intent, step.commit) for step in trace.steps]
    footer = trace.footer
    rating = Rating(z=()) if footer is None or footer.rating is None else footer.rating
    ending = Ending(
        instruction=trace.header.instruction,
        observation=_observation(case, steps[-1][0]),
        history=tuple(_past(intent, commit) for intent, commit in steps),
        milestones=trace.plans[-1].milestones if milestones and trace.plans else (),
        z=rating.z,
        answer=None if footer is None else footer.answer,
    )
    return complete_ending(EndedEpisode(ending, steps, rating, blobs))


def _past(intent: Intent, commit: Commit | None) -> PastAction:
    target = None if intent.target is None else intent.target.key
    return PastAction(intent.action, target, None if commit is None else commit.result)


def _observation(case: Case, intent: Intent) -> Observation:
    seen = intent.seen
    return Observation(
        url=seen.url,
        title=seen.title,
        text=case.file.blobs.text(seen.text_blob),
        elements=(),
        tabs=(),
        digest=seen.digest,
        viewport=seen.viewport or (1280, 800),
        scroll=(0, 0),
        controls_total=seen.controls_total,
        note=seen.note,
    )


class Judging(Protocol):
    """Gives a verdict on a recorded episode: (verdict, reason, tokens)."""

    async def verdict(self, case: Case) -> tuple[bool | None, str, int]: ...


class StateJudging:
    """All reference milestones are done, by the state checkers."""

    async def verdict(self, case: Case) -> tuple[bool | None, str, int]:
        checks = None if case.trace.footer is None else case.trace.footer.milestone_checks
        if not checks:
            return None, "no milestones", 0
        return all(check.achieved for check in checks), f"{sum(c.achieved for c in checks)} of {len(checks)}", 0


@dataclass
class ModelJudging:
    judge: OutcomeJudge
    milestones: bool

    async def verdict(self, case: Case) -> tuple[bool | None, str, int]:
        try:
            judgement = await self.judge.judge(ending_of(case, milestones=self.milestones))
        except ModelError as error:
            return None, f"{type(error).__name__}: {error}", 0
        usage = judgement.reply.usage
        return judgement.success, judgement.reason, usage.tokens_in + usage.tokens_out + usage.tokens_thinking


@dataclass
class RaterJudging:
    """All reference milestones are done, by a model that rates each page."""

    spec: str

    async def verdict(self, case: Case) -> tuple[bool | None, str, int]:
        plan = case.trace.header.reference_milestones
        if not plan:
            return None, "no milestones", 0
        z, tokens = (False,) * len(plan), 0
        async with aclosing(make_model(self.spec)) as model:
            rater = make_rater(self.spec, model, RaterSettings(), style=profile_of_spec(self.spec).role_style)
            try:
                for progress in progress_at_each_step(case, z):
                    rated = await rater.rate(replace(progress, z=z))
                    z = rated.rating.z
                    tokens += sum(reply.usage.tokens_in + reply.usage.tokens_out for reply in rated.replies)
            except ModelError as error:
                return None, f"{type(error).__name__}: {error}", tokens
        return all(z), f"{sum(z)} of {len(z)}", tokens


def progress_at_each_step(case: Case, z: tuple[bool, ...]) -> Iterator[Progress]:
    """The rater's input at every step of the episode."""
    past: list[PastAction] = []
    previous: Observation | None = None
    for number, (intent, commit) in enumerate(case.trace.steps):
        observation = _observation(case, intent)
        header = case.trace.header
        context = StepContext(header.instruction, observation, tuple(past), header.reference_milestones, z)
        yield Progress(**context.shared(), previous=previous, step=number)
        past.append(_past(intent, commit))
        previous = observation


async def judge_all(folders: Sequence[Path], judging: Judging, spec: str, file: Path, limit: int | None) -> None:
    """Appends the verdicts that *file* lacks; *limit*: on at most so many successes and so many failures."""
    known = {(row.run_id, row.episode_id) for row in read_verdicts(file) if row.judge == spec}
    taken = {True: 0, False: 0}
    for case in cases(folders):
        taken[case.success] += 1
        if case.identity in known or (limit is not None and taken[case.success] > limit):
            continue
        verdict, reason, tokens = await judging.verdict(case)
        row = VerdictRow(
            run_id=case.identity[0],
            episode_id=case.identity[1],
            task=case.trace.header.task.id,
            judge=spec,
            checker=case.success,
            verdict=verdict,
            reason=reason,
            tokens=tokens,
        )
        with file.open("a", encoding="utf-8") as lines:
            lines.write(row.model_dump_json() + "\n")


def read_verdicts(file: Path) -> list[VerdictRow]:
    if not file.exists():
        return []
    return [VerdictRow.model_validate_json(line) for line in json_lines(file.read_text("utf-8"))]


def agreement(rows: Sequence[VerdictRow], spec: str) -> Agreement:
    own = [row for row in rows if row.judge == spec]
    right = [row for row in own if row.verdict == row.checker]
    won = [row for row in own if row.checker]
    kept = [row for row in own if row.verdict]
    return Agreement(
        judge=spec,
        episodes=len(own),
        no_verdict=sum(row.verdict is None for row in own),
        agreement=proportion(len(right), len(own)),
        on_successes=proportion(sum(row.checker for row in right), len(won)),
        on_failures=proportion(sum(not row.checker for row in right), len(own) - len(won)),
        precision=proportion(sum(row.checker for row in kept), len(kept)),
        tokens=sum(row.tokens for row in own),
    )


async def judged(args: argparse.Namespace) -> Agreement:
    spec: str = args.judge
    label = f"{spec} with milestones" if args.milestones else spec
    if spec == "state":
        await judge_all(args.folders, StateJudging(), label, args.verdicts, args.limit)
    elif spec.startswith(RATED):
        await judge_all(args.folders, RaterJudging(spec.removeprefix(RATED)), label, args.verdicts, args.limit)
    else:
        async with aclosing(make_model(spec, base_url=args.base_url)) as model:
            judge = make_judge(spec, model)
            assert judge is not None
            await judge_all(args.folders, ModelJudging(judge, args.milestones), label, args.verdicts, args.limit)
    return agreement(read_verdicts(args.verdicts), label)


def main() -> None:
    parser = argparse.ArgumentParser(description="Agreement of an outcome judge with the checker.")
    commands = parser.add_subparsers(dest="command", required=True)
    playing = commands.add_parser("play")
    playing.add_argument("--out", type=Path, required=True)
    playing.add_argument("--episodes", type=int, default=100, help="of the oracle")
    playing.add_argument("--workers", type=int, default=2)
    judging = commands.add_parser("judge")
    judging.add_argument("folders", type=Path, nargs="+")
    judging.add_argument("--judge", required=True)
    judging.add_argument("--base-url")
    judging.add_argument("--verdicts", type=Path, required=True)
    judging.add_argument("--limit", type=int)
    judging.add_argument("--milestones", action="store_true")
    judging.add_argument("--json", action="store_true")
    args = parser.parse_args()
    if args.command == "play":
        asyncio.run(play(args.out, args.episodes, args.workers))
        return
    result = asyncio.run(judged(args))
    if args.json:
        print(json.dumps(result.model_dump(mode="json"), indent=2))
        return
    print(f"{result.judge}: {result.episodes} episodes, {result.no_verdict} without a verdict, {result.tokens} tokens")
    for name in ("agreement", "on_successes", "on_failures", "precision"):
        print(f"  {name.replace('_', ' '):14}{getattr(result, name)}")


if __name__ == "__main__":
    main()
