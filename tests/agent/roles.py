"""One model server that plans, rates, judges and acts for :class:`tests.agent.shop.Shop`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from agent.results import EpisodeResult
from agent.run.runner import run_task
from tests.agent.shop import Shop
from tests.models.providers.servers import Act, GoAway, MisbehavingServer, Received, Reply

Role = Literal["planner", "rater", "judge", "policy"]
ORDER = ('do(action="Type", element="1", argument="bob")', 'do(action="Click", element="2")', 'exit(message="ordered")')
PLAN = json.dumps({"m1": "The field Name holds bob", "m2": "The order is sent"})


@dataclass
class Roles:
    """One server in all roles: a planner with two milestones, a rater, a judge, and a policy that orders for bob.

    It goes away at the *nth* request of *leaves*, and answers with *garbled* where that says so of the request of a
    role, counted from 1.
    """

    leaves: Role = "policy"
    nth: int = 0
    garbled: Mapping[tuple[Role, int], str] = field(default_factory=dict[tuple[Role, int], str])
    asked: Counter[Role] = field(default_factory=Counter[Role])
    answered: Counter[Role] = field(default_factory=Counter[Role])

    def __call__(self, received: Received) -> Act:
        role = role_of(received)
        self.asked[role] += 1
        if role == self.leaves and self.asked[role] == self.nth:
            return GoAway()
        if (text := self.garbled.get((role, self.asked[role]))) is not None:
            return Reply(text)
        self.answered[role] += 1
        return Reply(self._text(role, received))

    def _text(self, role: Role, received: Received) -> str:
        match role:
            case "planner":
                return PLAN
            case "rater":
                return rating(received)
            case "judge":
                return json.dumps({"reason": "bob's order was taken.", "unmet": [], "success": True})
            case "policy":
                return ORDER[min(self.answered[role], len(ORDER)) - 1]


def role_of(received: Received) -> Role:
    """Role of a request, by its answer schema; the policy has none."""
    schema = received.body.get("response_format", {}).get("json_schema", {}).get("schema", {})
    properties = schema.get("properties", {})
    if "m1" in properties:
        return "planner"
    if "milestones" in properties:
        return "rater"
    return "judge" if "unmet" in properties else "policy"


def rating(received: Received) -> str:
    schema = received.body["response_format"]["json_schema"]["schema"]
    inner = schema["properties"]["milestones"]
    if "$ref" in inner:
        inner = schema["$defs"][inner["$ref"].rsplit("/", 1)[1]]
    ratings = {key: {"quote": "", "answer": "no"} for key in inner["properties"]}
    first = next(iter(ratings))
    return json.dumps(
        {"milestones": ratings, "current_complete": False, "next_milestone": first, "reason": "nothing is there"}
    )


async def ordered(server: MisbehavingServer, shop: Shop, out: Path, **settings: Any) -> EpisodeResult:
    """Plays the order for bob with models of *server* in all roles. The rater never says yes, so the stop is final."""
    options: dict[str, Any] = {
        **{"planner": "same", "judge": "same", "k": 2, "fsync": False, "confirm_stop": "off"},
        **settings,
    }
    return await run_task("Order for bob", shop.url, policy="openai:m", out=out, base_url=server.openai_url, **options)
