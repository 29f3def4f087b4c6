"""Tokens of policy, planner, rater and judge on ten site tasks, with scripted models in place of a large one.

    python -m benchmarks.tokens --out FOLDER [--json] [--most 8] [--before FILE]

The oracle plays each task once. Its recorded steps are then the policy's answers to the prompts that a large model
would get, up to --most of them in one answer where the page shows all their controls. Planner, rater and judge are
scripted: four milestones, of which one is achieved at every second rating. A token is four characters here, pictures
and thoughts are not counted. `new` leaves out what a prompt begins with that an earlier prompt of its role began with
too: a provider's cache may hold it. --before compares with the --json output of another version of the code.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import agent.run.components
from agent.config import RunConfig
from agent.episode.policy import ActionProposal, Turn
from agent.profiles.profile import named
from agent.run.demonstrations import DemonstrationPolicy
from agent.run.runner import run_suite
from benchmarks.percentages import change
from envs.core.action_languages import PROGRAM
from envs.core.tasks import TaskSelection
from models.base import ChatRequest, Message
from models.providers.scripted_model import ScriptedModel
from tests.agent.batching import BatchingPolicy, recorded

TASKS = (
    "shop-add-to-basket",
    "shop-order-fact",
    "shop-admin-set-order-status",
    "forum-reply",
    "forum-move-topic",
    "code-comment",
    "code-close-ticket",
    "cms-create-article",
    "map-drive-time",
    "multi-phone-to-forum",
)
ROLES = ("policy", "planner", "rater", "judge")
CHARS = 4


class Spending:
    """Calls and tokens by role."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.tokens: Counter[str] = Counter()
        self.new: Counter[str] = Counter()
        self._prompts: dict[str, list[str]] = {}

    def add(self, role: str, messages: tuple[Message, ...], answer: str) -> None:
        prompt = "".join(message.text for message in messages)
        earlier = self._prompts.setdefault(role, [])
        shared = max((_shared(prompt, other) for other in earlier), default=0)
        earlier.append(prompt)
        self.calls[role] += 1
        self.tokens[role] += (len(prompt) + len(answer)) // CHARS
        self.new[role] += (len(prompt) - shared + len(answer)) // CHARS


def _shared(first: str, second: str) -> int:
    """Length of the common prefix, by bisection."""
    low, high = 0, min(len(first), len(second))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if first.startswith(second[:middle]) else (low, middle - 1)
    return low


class CountedPolicy:
    """Counts the full prompts that *policy* would get, and its answers."""

    spec = "scripted"

    def __init__(self, policy: BatchingPolicy, most: int, spending: Spending) -> None:
        self._policy = DemonstrationPolicy(policy, named("large"))
        self._most = most
        self._spending = spending

    async def propose(self, turn: Turn) -> ActionProposal:
        proposal = await self._policy.propose(replace(turn, view=replace(turn.view, max_actions=self._most)))
        for call in proposal.calls:
            self._spending.add("policy", call.messages, proposal.raw)
        return proposal


def scripted(spending: Spending) -> ScriptedModel:
    """Planner, rater and judge by the schema of the answer."""

    async def answer(request: ChatRequest) -> str:
        fields = {} if request.schema is None else request.schema.model_fields
        role = "planner" if "m1" in fields else "rater" if "milestones" in fields else "judge"
        reply: dict[str, Any]
        if role == "planner":
            reply = {name: f"Part {number} of the task is done" for number, name in enumerate(fields, 1)}
        elif role == "judge":
            reply = {"reason": "The log and the pages show it.", "unmet": [], "success": True}
        else:
            annotation: Any = fields["milestones"].annotation
            reply = _rating(list(annotation.model_fields), request, spending.calls["rater"] % 2 == 1)
        text = json.dumps(reply)
        spending.add(role, request.messages, text)
        return text

    return ScriptedModel(answer)


def _rating(keys: list[str], request: ChatRequest, achieved: bool) -> dict[str, Any]:
    """The first open milestone is proven by the last line of the log at every second rating."""
    log = re.search(r"⟦⟦DATA log⟧⟧\n(.*?)\n⟦⟦END log⟧⟧", request.messages[-1].text, re.DOTALL)
    last = log[1].splitlines()[-1] if log else ""
    answers: dict[str, Any] = {key: {"quote": "", "answer": "no"} for key in keys}
    if achieved and not last.startswith("("):
        answers[keys[0]] = {"quote": last, "answer": "yes"}
    return {"milestones": answers, "current_complete": False, "next_milestone": keys[-1], "reason": "As the log shows."}


async def measure(out: Path, most: int) -> dict[str, Any]:
    selection, spending = TaskSelection("sites", TASKS, (0,)), Spending()
    oracle = await run_suite(RunConfig(policy="oracle", planner="none", judge="state", fsync=False), selection, out)

    def make_model(spec: str, **options: object) -> ScriptedModel:
        return scripted(spending)

    agent.run.components.make_model = make_model
    config = RunConfig(
        policy="scripted",
        planner="openai:scripted",
        judge="openai:scripted",
        fsync=False,
        max_actions_per_turn=most,
    )
    policy = CountedPolicy(BatchingPolicy(recorded(oracle.folder), PROGRAM, most), most, spending)
    run = await run_suite(config, selection, out, policy=policy)
    roles = {
        role: {"calls": spending.calls[role], "tokens": spending.tokens[role], "new": spending.new[role]}
        for role in ROLES
    }
    return {
        "episodes": len(run.episodes),
        "successes": sum(episode.outcome == "success" for episode in run.episodes),
        "steps": sum(episode.totals.steps for episode in run.episodes),
        "roles": roles,
    }


def table(now: dict[str, Any], before: dict[str, Any] | None) -> str:
    """A Markdown table; a number of before stands after `from`."""
    lines = ["| role | calls | tokens | new |", "|---|---|---|---|"]
    for role in (*ROLES, "all"):
        cells = [_cell(now, before, role, key) for key in ("calls", "tokens", "new")]
        lines.append(f"| {role} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(now: dict[str, Any], before: dict[str, Any] | None, role: str, key: str) -> str:
    value = _number(now, role, key)
    old = None if before is None else _number(before, role, key)
    return f"{value:,}" if not old else f"{value:,} from {old:,} ({change(value / old - 1)})"


def _number(result: dict[str, Any], role: str, key: str) -> int:
    roles = ROLES if role == "all" else (role,)
    return sum(result["roles"][one][key] for one in roles)


def main() -> None:
    parser = argparse.ArgumentParser(description="Tokens by role on ten site tasks.")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--most", type=int, default=RunConfig().max_actions_per_turn, help="actions of an answer")
    parser.add_argument("--before", type=Path)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    result = asyncio.run(measure(args.out, args.most))
    if args.json:
        print(json.dumps(result, indent=2))
        return
    before = None if args.before is None else json.loads(args.before.read_text("utf-8"))
    print(f"{result['successes']} of {result['episodes']} solved in {result['steps']} steps")
    print(table(result, before))


if __name__ == "__main__":
    main()
