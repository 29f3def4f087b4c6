"""One run on a real page whose controls have the same names: what its prompts, its trace and its reports contain."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.episode.approval import ApprovalRequest
from agent.episode.policy import ModelPolicy
from agent.inspection.replay import branch_trace
from agent.inspection.report import write_report
from agent.run.runner import run_open
from envs.core.action_languages import PROGRAM
from envs.core.trace_store import read_trace
from models.providers.scripted_model import ScriptedModel
from tests.agent.shop import Shop, config
from tests.mira_command import mira

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("shared_chromium")]

ROWS = "".join(
    f"<tr><td>Invoice {n}</td><td>Ana {n}</td><td><a data-x style='cursor:pointer' "
    f"onclick=\"this.textContent='gone'\">delete</a></td></tr>"
    for n in range(1, 13)
)
SECRET = "Kestrel7-Quartz"
PAGE = f"<title>Invoices</title><table>{ROWS}</table><p>The key is {SECRET}</p>"
ANSWERS = (
    f'# Note: 12 invoices\n# Note: the key is {SECRET}\ndo(action="Click", element="7")',
    "# Note: Ana 7 was deleted\nI am done with it",
    "hm",
    '# Forget note 1\n# Note 3: Ana 7 is gone\ndo(action="Click At", x=5, y=5)',
    "exit()",
)
KEPT = ("the key is <secret>PW</secret>", "Ana 7 is gone")


async def test_what_was_meant_and_noted_is_known_at_every_later_step(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PW", SECRET)
    shop.front = PAGE
    asked: list[ApprovalRequest] = []

    async def person(request: ApprovalRequest) -> bool:
        asked.append(request)
        return True

    model = ScriptedModel(ANSWERS)
    settings = config(secrets=("PW=env:PW",), approve=("submit",), screenshots="steps")
    run = await run_open(
        settings, "Delete", shop.url, tmp_path, policy=ModelPolicy(model, PROGRAM, "full"), approver=person
    )
    meant = 'click clickable "delete" in row "Invoice 7 · Ana 7"'
    prompts = [request.messages[1].text for request in model.requests]
    assert f"1. {meant}" in prompts[1]
    assert "1. 12 invoices\n2. the key is <secret>PW</secret>\n" in prompts[1]
    assert "3. Ana 7 was deleted" in prompts[3], "the note of an answer without an action"
    assert "note 3 was replaced; it said: Ana 7 was deleted" in prompts[4] and "12 invoices" not in prompts[4]
    assert all(SECRET not in prompt for prompt in prompts)
    assert asked[0].action.startswith(f"{meant}: ")
    path = run.folder / run.episodes[0].trace
    trace = read_trace(path)
    first, second, _ = (step.intent for step in trace.steps)
    assert first.place is not None and first.place.where == 'in row "Invoice 7 · Ana 7"'
    assert second.place is None or second.place.at
    assert tuple(note.text for note in trace.notes) == KEPT
    assert SECRET not in path.read_text(encoding="utf-8")
    assert KEPT[1] in write_report([run.folder]).path.read_text(encoding="utf-8")
    assert mira(monkeypatch, "show", str(path)) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "note 3 Ana 7 is gone" in shown and 'in row "Invoice 7 · Ana 7"' in shown


async def test_a_branch_keeps_the_notes_of_the_steps_that_it_repeats(shop: Shop, tmp_path: Path) -> None:
    shop.front = PAGE
    model = ScriptedModel(ANSWERS)
    run = await run_open(config(), "Delete", shop.url, tmp_path, policy=ModelPolicy(model, PROGRAM, "full"))
    then = ScriptedModel(["exit()"])
    path = run.folder / run.episodes[0].trace
    branch = await branch_trace(path, ModelPolicy(then, PROGRAM, "full"), at=2, out=tmp_path / "branch", may_act=True)
    assert f"1. 12 invoices\n2. the key is {SECRET}\n" in then.requests[0].messages[1].text
    notes = read_trace(branch.folder / branch.episodes[0].trace).notes
    assert [note.text for note in notes] == ["12 invoices", f"the key is {SECRET}"]
