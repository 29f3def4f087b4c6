"""The approval interrupt needs the graph's in-memory checkpoints, and an episode frees them at its end."""

from __future__ import annotations

from pathlib import Path

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from agent.episode import graph
from agent.episode.approval import ApprovalRequest
from agent.results import EpisodeResult
from agent.run.runner import run_open
from tests.agent.episode.test_run_episode import ORDER
from tests.agent.shop import Shop, config, scripted

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("shared_chromium")]


async def order(shop: Shop, out: Path, requests: list[ApprovalRequest]) -> EpisodeResult:
    """Runs an order whose form needs approval, and approves it."""

    async def approver(request: ApprovalRequest) -> bool:
        requests.append(request)
        return True

    settings = config(approve=("submit",))
    run = await run_open(settings, "Order", shop.url, out, policy=scripted(ORDER), approver=approver)
    return run.episodes[0]


async def test_the_interrupt_waits_for_approval_and_leaves_no_checkpoint(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    savers: list[InMemorySaver] = []

    def recorded() -> InMemorySaver:
        savers.append(InMemorySaver())
        return savers[-1]

    monkeypatch.setattr(graph, "InMemorySaver", recorded)
    requests: list[ApprovalRequest] = []
    episode = await order(shop, tmp_path, requests)
    assert (episode.ended_by, len(requests), shop.orders) == ("stop", 1, ["who=bob"])
    (saver,) = savers
    assert (dict(saver.storage), dict(saver.writes), dict(saver.blobs)) == ({}, {}, {})


@pytest.mark.filterwarnings("ignore:`durability` has no effect:UserWarning")
async def test_without_a_saver_an_approved_action_is_never_sent(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Control: the result of the test above for a graph without a saver."""
    monkeypatch.setattr(graph, "InMemorySaver", lambda: None)
    requests: list[ApprovalRequest] = []
    episode = await order(shop, tmp_path, requests)
    assert episode.outcome == "broken" and "No checkpointer set" in (episode.error or "")
    assert requests and shop.orders == []
