"""Rollouts of MiniWoB++ in which the task's solver says at every step what it would do: `benchmarks.credit` reads them.

    python -m benchmarks.credit_rollouts --out runs/credit --seeds 3000000-3000005 --attempts 4

The policy plays as in a phase of `mira train mira` (its configuration gives the start and the limits). Beside the run,
`oracle.jsonl` gets a line for each decision: the episode, the step, the solver's action in that state, and whether the
policy's action is the same. A solver that does not know the page has none. Killed, the same command continues.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

from agent.cli.options import parse_seeds
from agent.episode.policy import ActionProposal, Policy, Turn, storable_action
from agent.run.components import open_components
from agent.run.runner import resume, run_suite
from envs.core.actions import Action
from envs.core.json_lines import json_lines
from envs.core.record import Record
from envs.core.tasks import TaskSelection
from envs.suites.miniwob.solvers import SOLVERS, Past, Screen, Unsolvable
from training.loop.rollouts import rollout_config
from training.loop.settings import load_settings

LABELS = "oracle.jsonl"
RUN = "run"

LONG_TASKS: tuple[str, ...] = (
    "book-flight",
    "book-flight-nodelay",
    "choose-date",
    "choose-date-nodelay",
    "click-checkboxes-large",
    "click-shades",
    "copy-paste",
    "copy-paste-2",
    "sign-agreement",
    "social-media-all",
    "use-spinner",
)
"""Tasks for which the solver needs six or more steps (median of seeds 3,600,000 to 3,600,002), so that it matters which
of them were right."""

LONG_TEMPLATES: tuple[str, ...] = (
    "cms-add-redirect",
    "cms-compare-events",
    "cms-edit-event",
    "cms-edit-title",
    "cms-move-page",
    "cms-schedule",
    "cms-unpublish",
    "code-close-duplicate",
    "code-move-due",
    "code-move-two",
    "code-new-milestone",
    "code-new-ticket",
    "code-new-version",
    "code-wiki-append",
    "forum-close-topic",
    "forum-describe-category",
    "forum-longer-topic",
    "forum-move-topic",
    "forum-reply",
    "forum-vote",
    "shop-add-address",
    "shop-add-to-basket",
    "shop-add-to-wish-list",
    "shop-admin-change-price",
    "shop-admin-create-range",
    "shop-admin-customer-figures",
    "shop-admin-deactivate-customer",
    "shop-admin-hide-product",
    "shop-admin-order-statistics",
    "shop-admin-readdress",
    "shop-admin-set-latest-status",
    "shop-admin-set-order-status",
    "shop-admin-show-report",
    "shop-admin-unknown-customer",
    "shop-dead-coupon",
    "shop-order",
    "shop-ship-abroad",
    "shop-spent-between",
    "shop-two-in-basket",
    "shop-which-order",
)
"""Training templates for which the solver needs six or more steps (instance 9), so that it matters which of them were
right."""


class Label(Record):
    """What the solver would do in the state of one decision."""

    task: str
    attempt: int
    step: int
    oracle: str | None
    """Its action as JSON; None where it does not know the page."""
    right: bool | None
    """Whether the policy's action is the same; None where either is missing."""


class LabelledPolicy:
    """Plays as *inner*, and writes what the task's solver would have done."""

    def __init__(self, inner: Policy, file: Path) -> None:
        self.spec = inner.spec
        self._inner = inner
        self._file = file

    async def propose(self, turn: Turn) -> ActionProposal:
        proposal = await self._inner.propose(turn)
        known, action = solver_action(turn), proposal.action
        label = Label(
            task=turn.task.id,
            attempt=turn.attempt,
            step=turn.step,
            oracle=None if known is None else known.model_dump_json(),
            right=None if known is None or action is None else storable_action(action) == known,
        )
        with self._file.open("a", encoding="utf-8") as file:
            file.write(label.model_dump_json() + "\n")
        return proposal


def solver_action(turn: Turn) -> Action | None:
    """The action of the task's solver in this state; None without a solver, or where it does not know the page."""
    solver = SOLVERS.get(turn.task.name)
    past = tuple(Past(step.action, step.target) for step in turn.past)
    try:
        screen = Screen(turn.view.instruction, turn.view.observation, past)
        return None if solver is None else storable_action(solver(screen))
    except Unsolvable:
        return None


def labels_of(folder: Path) -> Iterator[Label]:
    """The labels beside the run in *folder*; of a step that was asked twice, the last is the one that was played."""
    for line in json_lines((folder / LABELS).read_text(encoding="utf-8")):
        yield Label.model_validate(json.loads(line))


async def play(config: Path, out: Path, tasks: tuple[str, ...], seeds: tuple[int, ...], attempts: int) -> None:
    """Raises BadInput for a wrong configuration."""
    settings = load_settings(config, [f"rollouts.attempts={attempts}"])
    played = rollout_config(Path(settings.start), settings.rollouts, settings.seed)
    selection = TaskSelection("miniwob", tasks or settings.pool.names, seeds)
    async with open_components(played, "miniwob") as components:
        policy = LabelledPolicy(components.policy, out / LABELS)
        if (out / RUN).exists():
            result = await resume(out / RUN, policy=policy)
        else:
            result = await run_suite(played, selection, out, run_id=RUN, policy=policy)
    won = sum(episode.outcome == "success" for episode in result.episodes)
    print(f"{won} of {len(result.episodes)} episodes solved ({result.planned} planned)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-c", "--config", type=Path, default=Path("training/configs/tiny-miniwob-long.toml"))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--tasks", default="", help="with commas; default: those of the configuration's pool")
    parser.add_argument("--seeds", default="3000000-3000003")
    parser.add_argument("--attempts", type=int, default=4)
    args = parser.parse_args()
    tasks = tuple(name for name in args.tasks.split(",") if name)
    args.out.mkdir(parents=True, exist_ok=True)
    asyncio.run(play(args.config, args.out, tasks, tuple(parse_seeds(args.seeds)), args.attempts))


if __name__ == "__main__":
    main()
