"""Tokens of policy, planner, rater and judge on ten site tasks, with scripted models in place of a large one.

    python -m benchmarks.tokens --out FOLDER [--json] [--before FILE]

The oracle's actions are the policy's answers, to the prompts that a large model would get. Planner, rater and judge are
scripted: four milestones, of which one is achieved at every second rating. A token is four characters here, pictures
and thoughts are not counted, and nothing is taken off for a provider's cache. --before compares with the --json output
of another version of the code, which the same file measures.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import agent.run.components
from agent.config import RunConfig
from agent.episode.policy import ActionProposal, Turn
from agent.run.demonstrations import DemonstrationPolicy
from agent.run.oracle import SitesOracle
from agent.run.runner import run_suite
from envs.core.action_languages import PROGRAM
from envs.core.tasks import TaskSelection
from models.base import ChatRequest, Message
from models.providers.scripted_model import ScriptedModel

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

    def add(self, role: str, messages: tuple[Message, ...], answer: str) -> None:
        self.calls[role] += 1
        self.tokens[role] += (sum(len(message.text) for message in messages) + len(answer)) // CHARS


class CountedPolicy:
    """The oracle, as a large model with full prompts."""

    spec = "scripted"

    def __init__(self, spending: Spending) -> None:
        self._oracle = DemonstrationPolicy(SitesOracle(PROGRAM), "full")
        self._spending = spending

    async def propose(self, turn: Turn) -> ActionProposal:
        proposal = await self._oracle.propose(turn)
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


async def measure(out: Path) -> dict[str, Any]:
    spending = Spending()

    def make_model(spec: str, **options: object) -> ScriptedModel:
        return scripted(spending)

    agent.run.components.make_model = make_model
    config = RunConfig(policy="scripted", planner="openai:scripted", judge="openai:scripted", fsync=False)
    run = await run_suite(config, TaskSelection("sites", TASKS, (0,)), out, policy=CountedPolicy(spending))
    roles = {role: {"calls": spending.calls[role], "tokens": spending.tokens[role]} for role in ROLES}
    return {
        "episodes": len(run.episodes),
        "successes": sum(episode.outcome == "success" for episode in run.episodes),
        "steps": sum(episode.totals.steps for episode in run.episodes),
        "roles": roles,
        "tokens": sum(spending.tokens.values()),
    }


def table(now: dict[str, Any], before: dict[str, Any] | None) -> str:
    """A Markdown table."""
    lines = ["| role | calls | tokens | before | change |", "|---|---|---|---|---|"]
    for role in (*ROLES, "all"):
        own = _numbers(now, role)
        old = None if before is None else _numbers(before, role)
        change = "" if old is None or not old[1] else f"{own[1] / old[1] - 1:+.0%}"
        lines.append(f"| {role} | {own[0]} | {own[1]:,} | {'' if old is None else f'{old[1]:,}'} | {change} |")
    return "\n".join(lines)


def _numbers(result: dict[str, Any], role: str) -> tuple[int, int]:
    if role == "all":
        return sum(one["calls"] for one in result["roles"].values()), result["tokens"]
    return result["roles"][role]["calls"], result["roles"][role]["tokens"]


def main() -> None:
    parser = argparse.ArgumentParser(description="Tokens by role on ten site tasks.")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--before", type=Path)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    result = asyncio.run(measure(args.out))
    if args.json:
        print(json.dumps(result, indent=2))
        return
    before = None if args.before is None else json.loads(args.before.read_text("utf-8"))
    print(f"{result['successes']} of {result['episodes']} solved in {result['steps']} steps")
    print(table(result, before))


if __name__ == "__main__":
    main()
