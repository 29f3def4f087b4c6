"""Which roles are shown the picture of the view."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from agent.config import RunConfig
from agent.run.components import open_components
from tests.agent.roles import Role, Roles, ordered, role_of
from tests.agent.shop import Shop
from tests.models.local.test_local import save_checkpoint
from tests.models.providers.servers import Act, Received, misbehaving_server


class Seeing(Roles):
    """Counts the pictures of each role's requests."""

    def __init__(self) -> None:
        super().__init__()
        self.pictures: defaultdict[Role, set[int]] = defaultdict(set)

    def __call__(self, received: Received) -> Act:
        contents = [message["content"] for message in received.body["messages"]]
        parts = [part for content in contents if isinstance(content, list) for part in content]
        self.pictures[role_of(received)].add(sum(part["type"] == "image_url" for part in parts))
        return super().__call__(received)


@pytest.mark.browser
@pytest.mark.usefixtures("shared_chromium")
@pytest.mark.parametrize(("screenshots", "shown"), [("off", 0), ("steps", 0), ("plain", 1)])
async def test_planner_rater_and_judge_see_what_the_policy_sees(
    shop: Shop, tmp_path: Path, screenshots: str, shown: int
) -> None:
    served = Seeing()
    async with misbehaving_server(served) as server:
        result = await ordered(server, shop, tmp_path, screenshots=screenshots)
    assert result.outcome == "success"
    assert served.pictures == {role: {shown} for role in ("planner", "policy", "rater", "judge")}


@pytest.mark.parametrize(
    ("values", "pictured"),
    [
        ({"screenshots": "plain", "planner": "openai:m", "judge": "local:TEXT"}, {"planner"}),
        ({"screenshots": "marks", "planner": "local:TEXT", "judge": "openai:m", "rater": "embedded"}, {"judge"}),
        ({"grounder": "same", "planner": "same", "judge": "same"}, set[str]()),
        ({"policy": "anthropic-browser:claude-m", "planner": "openai:m", "judge": "local:TEXT"}, set[str]()),
    ],
    ids=["a judge of text", "a planner of text", "for the grounder only", "for a tool set only"],
)
async def test_no_picture_goes_to_a_model_of_text_or_is_shown_unasked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, values: dict[str, Any], pictured: set[str]
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    text = f"local:{save_checkpoint(tmp_path)}"
    named = {key: value.replace("local:TEXT", text) for key, value in values.items()}
    async with open_components(RunConfig.model_validate({"policy": "openai:m", **named}), "open") as components:
        assert components.pictured == pictured
