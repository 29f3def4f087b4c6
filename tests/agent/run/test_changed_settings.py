"""Resumes with larger limits, or with another model or server: what continues, what is recorded, what is refused."""

from __future__ import annotations

import asyncio
import json
import re
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from agent.cli.run import finish
from agent.config import Limits, RunConfig, parse_config
from agent.inspection.compare import compare
from agent.inspection.replay.recorded import Recording
from agent.progress import Event, StepDone
from agent.results import EpisodeResult, RunResult
from agent.run.changed_settings import with_changes
from agent.run.discover_traces import discover_traces
from agent.run.limits import continues
from agent.run.oracle import miniwob_oracle
from agent.run.prompt_profiles import with_profile
from agent.run.resume import recover
from agent.run.run_store import RunFolder
from agent.run.runner import resume, run_suite, run_task
from envs.core.actions import Click, Stop, Type
from envs.core.errors import BadInput, ResetFailed, TraceError
from envs.core.tasks import EpisodeStart, TaskSelection
from envs.core.trace import EndedBy, Footer, Outcome, Totals
from envs.core.trace import Event as TraceEvent
from envs.core.trace_store import BlobStore, Trace, TraceWriter, read_trace
from envs.suites.miniwob.environment import MiniwobEnvironment
from tests.agent.episodes import Play, write_run
from tests.agent.foreign_machine import keyed
from tests.agent.mira_process import run_mira
from tests.agent.roles import Roles, ordered
from tests.agent.run.test_resume import HEADER, ONE_STEP
from tests.agent.shop import Shop, config, scripted
from tests.mira_command import mira
from tests.models.providers.servers import Act, Received, Status, misbehaving_server
from training.data.trajectories import select
from training.loop.evaluation.reading import read_played

browser = pytest.mark.browser
shared = pytest.mark.usefixtures("shared_chromium")

ORDER = scripted((Type(ref=1, text="bob"), Click(ref=2), Stop(answer="ordered")))
NO_MODELS: Mapping[str, Any] = {"planner": "none", "judge": "none", "retry_window_s": 0}


def trace_of(result: EpisodeResult) -> Trace:
    return read_trace(result.trace_path)


def numbers(trace: Trace) -> list[int]:
    return [step.intent.step for step in trace.steps]


@dataclass
class Named(Roles):
    """The models of :class:`Roles`. A model in `refused` gets that status from its request number `works` on."""

    refused: Mapping[str, int] = field(default_factory=dict[str, int])
    works: int = 0
    models: list[str] = field(default_factory=list[str])

    def __call__(self, received: Received) -> Act:
        model = received.body["model"]
        self.models.append(model)
        if model in self.refused and self.models.count(model) > self.works:
            return Status(self.refused[model], "no such model, or no such key")
        return super().__call__(received)


@browser
@shared
async def test_an_open_task_continues_past_its_step_limit_and_sends_nothing_twice(shop: Shop, tmp_path: Path) -> None:
    cut = await run_task("Order", shop.url, policy=ORDER, out=tmp_path, limits={"max_steps": 2}, fsync=False)
    assert (cut.ended_by, shop.orders) == ("max_steps", ["who=bob"])
    folder = tmp_path / cut.run_id
    before = RunFolder(folder).read_manifest().config
    (result,) = (await resume(folder, policy=ORDER, limits={"max_steps": 40})).episodes
    assert (result.ended_by, result.answer, shop.orders) == ("stop", "ordered", ["who=bob"])
    trace = trace_of(result)
    assert numbers(trace) == [1, 2, 3] and result.totals.steps == 3
    (resumed,) = trace.events
    assert resumed.detail == (
        "after step 2; before that: max_steps (2; --max-steps raises it); from here on: limits.max_steps 2 → 40"
    )
    assert trace.header.config["limits"]["max_steps"] == 2
    assert trace.footer is not None and trace.footer.config == resumed.config == trace.config
    after = RunFolder(folder).read_manifest().config
    assert after == before.model_copy(update={"limits": Limits(max_steps=40)}), "all else stays as recorded"
    assert Recording.read(discover_traces([folder])[0]).header.config["limits"]["max_steps"] == 40, "for a branch"


@browser
@shared
async def test_a_page_that_is_rebuilt_continues_past_its_step_limit(tmp_path: Path) -> None:
    selection = TaskSelection("miniwob", ("login-user",), (0,))
    (cut,) = (await run_suite(config(policy="oracle", limits={"max_steps": 2}), selection, tmp_path)).episodes
    assert (cut.outcome, cut.ended_by) == ("failure", "max_steps")
    (result,) = (await resume(tmp_path / cut.run_id, limits={"max_steps": 60})).episodes
    assert result.outcome == "success"
    assert numbers(trace_of(result)) == list(range(1, result.totals.steps + 1))


@browser
@shared
async def test_in_a_suite_only_unsuccessful_episodes_at_a_limit_continue_also_after_an_interruption(
    tmp_path: Path,
) -> None:
    """The raised limit is kept in run.json, so that a plain resume continues what is left."""
    policy = scripted(miniwob_oracle)
    selection = TaskSelection("miniwob", ("click-test", "login-user"), (0, 1))
    run = await run_suite(config(limits={"max_steps": 2}), selection, tmp_path, policy=policy)
    assert [episode.ended_by for episode in run.episodes] == ["environment", "environment", "max_steps", "max_steps"]
    before = [episode.trace_path.read_bytes() for episode in run.episodes]

    def interrupt(event: Event) -> None:
        if isinstance(event, StepDone):
            signal.raise_signal(signal.SIGTERM)

    stopped = await resume(run.folder, (interrupt,), policy=policy, limits={"max_steps": 10})
    assert not stopped.complete
    again = await resume(run.folder, policy=policy)
    assert [episode.outcome for episode in again.episodes] == ["success"] * 4
    assert [episode.totals.steps for episode in again.episodes] == [1, 1, 3, 3]
    after = [episode.trace_path.read_bytes() for episode in again.episodes]
    assert [old == new for old, new in zip(before, after, strict=True)] == [True, True, False, False]
    assert all(new.startswith(old) for old, new in zip(before, after, strict=True)), "traces are only appended to"
    rows = (run.folder / "results.jsonl").read_text().splitlines()
    assert [json.loads(row)["outcome"] for row in rows] == ["success"] * 4


@browser
@shared
async def test_a_token_limit_is_raised_and_the_tokens_before_count(shop: Shop, tmp_path: Path) -> None:
    async with misbehaving_server(Roles()) as server:
        cut = await ordered(server, shop, tmp_path, limits={"max_tokens": 150}, **NO_MODELS)
        assert (cut.ended_by, cut.totals.steps, cut.totals.tokens) == ("max_tokens", 2, 220)
        with pytest.raises(BadInput, match="continue with --max-tokens above 220"):
            await resume(tmp_path / cut.run_id, limits={"max_tokens": 220})
        (result,) = (await resume(tmp_path / cut.run_id, limits={"max_tokens": 221})).episodes
    assert (result.ended_by, result.totals.tokens, shop.orders) == ("stop", 330, ["who=bob"])


@browser
@shared
async def test_the_deadline_is_raised_and_the_seconds_before_count(shop: Shop, tmp_path: Path) -> None:
    cut = await run_task("Order", shop.url, policy=ORDER, out=tmp_path, limits={"max_seconds": 0.001}, fsync=False)
    assert (cut.ended_by, cut.totals.steps) == ("max_seconds", 0)
    (result,) = (await resume(tmp_path / cut.run_id, policy=ORDER, limits={"max_seconds": 0})).episodes
    assert (result.ended_by, shop.orders) == ("stop", ["who=bob"])
    assert result.totals.seconds > cut.totals.seconds


@browser
@shared
async def test_a_world_that_cannot_be_restored_keeps_the_result_of_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy, selection = scripted(miniwob_oracle), TaskSelection("miniwob", ("login-user",), (0,))
    run = await run_suite(config(limits={"max_steps": 2}), selection, tmp_path, policy=policy)

    async def gone(*_: object) -> EpisodeStart:
        raise ResetFailed("the server is gone")

    with monkeypatch.context() as patched:
        patched.setattr(MiniwobEnvironment, "restore_state", gone)
        (kept,) = (await resume(run.folder, policy=policy, limits={"max_steps": 10})).episodes
    assert (kept.outcome, kept.ended_by, kept.totals) == ("failure", "max_steps", run.episodes[0].totals)
    assert kept.error == "not continued: ResetFailed: the server is gone"
    (result,) = (await resume(run.folder, policy=policy)).episodes
    assert (result.outcome, result.totals.steps) == ("success", 3)


@browser
@shared
async def test_a_run_whose_model_does_not_exist_continues_with_the_command_that_it_names(
    shop: Shop, tmp_path: Path
) -> None:
    served = Named(refused={"typo": 404})
    async with misbehaving_server(served) as server:
        words = ("run", "Order for bob", "--url", shop.url, "--policy", "openai:typo", "--base-url", server.openai_url)
        broken = await asyncio.to_thread(run_mira, *words, "--milestones", "2", "--out", tmp_path / "runs")
        said = " ".join(broken.stdout.split())
        hint = re.search(r"continue with another model: mira (resume \S+ --policy) MODEL", said)
        assert broken.returncode == 1 and hint is not None, said
        again = await asyncio.to_thread(run_mira, *hint[1].split(), "openai:m", "--json")
    (episode,) = json.loads(again.stdout)["episodes"]
    assert (again.returncode, episode["outcome"], episode["answer"]) == (0, "success", "ordered"), again.stderr
    assert shop.orders == ["who=bob"] and set(served.models) == {"typo", "m"}
    (path,) = (tmp_path / "runs").glob("*/episodes/*.jsonl")
    trace = read_trace(path)
    assert (trace.header.config["policy"], trace.config["policy"], trace.policy) == ("openai:typo",) + ("openai:m",) * 2
    changed = "from here on: policy openai:typo → openai:m"
    shown = await asyncio.to_thread(run_mira, "show", path)
    assert changed in " ".join(shown.stdout.split())
    listed = json.loads((await asyncio.to_thread(run_mira, "show", path, "--json")).stdout)
    assert [line["config"]["policy"] for line in listed if line.get("name") == "resumed"] == ["openai:m"]
    page = (path.parent.parent / "report.html").read_text()
    assert changed in page


@browser
@shared
async def test_every_reader_names_both_models_of_an_episode_that_another_one_finished(
    shop: Shop, tmp_path: Path
) -> None:
    served = Named(refused={"first": 401}, works=2)
    async with misbehaving_server(served) as server:
        options: dict[str, Any] = {**NO_MODELS, "outcome": "checker", "base_url": server.openai_url}
        broken = await run_task("Order", shop.url, policy="openai:first", out=tmp_path, **options)
        assert (broken.outcome, broken.resumable, broken.refused) == ("broken", True, "policy")
        with pytest.raises(BadInput, match="key 'base_url': this names nothing"):
            await resume(tmp_path / broken.run_id, base_url="")
        (result,) = (await resume(tmp_path / broken.run_id, policy="openai:second", judge="same")).episodes
    assert (result.outcome, result.refused, shop.orders) == ("success", None, ["who=bob"])
    trace = trace_of(result)
    answered = [call.model for step in trace.steps for call in step.intent.calls if call.role == "policy"]
    assert answered == ["first", "first", "second"]
    both = "openai:first, then openai:second"
    files = discover_traces([tmp_path / broken.run_id])
    assert trace.policy == both == compare(files, files).a.policy
    assert [played.policy for played in read_played(files).played] == [both]
    assert [kept.policy for kept in select((file.read(), file.blobs) for file in files).kept] == [both]


@browser
@shared
async def test_a_verdict_that_a_server_refused_is_asked_of_another_judge(
    shop: Shop, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    served = Named(refused={"typo": 404})
    async with misbehaving_server(served) as server:
        unjudged = await ordered(server, shop, tmp_path, judge="openai:typo", planner="none", retry_window_s=0)
        assert (unjudged.outcome, unjudged.resumable, unjudged.refused) == ("unjudged", True, "judge")
        folder = tmp_path / unjudged.run_id
        await asyncio.to_thread(finish, RunResult(unjudged.run_id, folder, (unjudged,), 1, 1.0), False)
        assert f"mira resume {folder} --judge MODEL, or" in " ".join(capsys.readouterr().out.split())
        asked = served.asked["policy"]
        (result,) = (await resume(folder, judge="openai:m")).episodes
    assert (result.outcome, result.refused, served.asked["policy"]) == ("success", None, asked)
    assert trace_of(result).policy == "openai:m", "its policy is the same"


@pytest.mark.parametrize(
    ("ended_by", "outcome", "totals", "limits", "expected"),
    [
        ("max_steps", "failure", {"steps": 20}, {"max_steps": 21}, True),
        ("max_steps", "unjudged", {"steps": 20}, {"max_steps": 21}, True),
        ("max_steps", "success", {"steps": 20}, {"max_steps": 21}, False),
        ("max_steps", "failure", {"steps": 20}, {}, False),
        ("max_steps", "failure", {"steps": 20}, {"max_seconds": 900}, False),
        ("max_steps", "failure", {"steps": 20, "seconds": 70}, {"max_steps": 21}, False),
        ("max_seconds", "failure", {"seconds": 59.9}, {}, False),
        ("max_seconds", "failure", {"seconds": 59.9}, {"max_seconds": 61}, True),
        ("max_seconds", "failure", {"seconds": 80}, {"max_seconds": 61}, False),
        ("max_cost", "failure", {"cost_usd": 0.5}, {"max_cost_usd": 0}, True),
        ("max_cost", "failure", {"cost_usd": 0.5}, {"max_cost_usd": 0.4}, False),
        ("stop", "failure", {"steps": 3}, {"max_steps": 21}, False),
        ("error", "broken", {"steps": 20}, {"max_steps": 21}, False),
    ],
)
def test_which_episode_continues_with_other_limits(
    ended_by: EndedBy, outcome: Outcome, totals: dict[str, Any], limits: dict[str, float], expected: bool
) -> None:
    before = {"max_steps": 20, "max_seconds": 60.0, "max_cost_usd": 0.5}
    footer = Footer(outcome=outcome, ended_by=ended_by, judged_by="none", totals=Totals(**totals), at="")
    now = Limits.model_validate(before | limits)
    assert continues({"limits": before}, footer, now) is expected
    changed = footer.model_copy(update={"config": {"limits": now.model_dump()}})
    assert not continues({"limits": before}, changed, now), "the limits at its end count, not those of the header"
    assert not continues({}, footer, now)


def test_seconds_of_an_episode_that_a_limit_ended_count_where_no_step_used_them() -> None:
    """A call that ran out of time leaves no step."""
    footer = Footer(
        outcome="failure", ended_by="max_seconds", judged_by="none", totals=Totals(steps=1, seconds=60.0), at=""
    )
    recovered = recover((HEADER, *ONE_STEP, footer))
    assert recovered.usage_tracker.totals(1, 0.5).seconds == 60.5


@pytest.fixture
def finished(tmp_path: Path) -> RunFolder:
    """A run of this machine with one failed episode that ended itself after two steps."""
    return write_run(tmp_path / "r", [Play(outcome="failure")])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--max-steps", "40"], "is finished: no episode continues with these settings"),
        (["--policy", "openai:m"], "is finished: no episode continues with these settings"),
        (["--policy", " "], "this names nothing"),
    ],
)
def test_settings_without_effect_are_refused(
    finished: RunFolder,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    message: str,
) -> None:
    written = finished.manifest.read_bytes()
    assert mira(monkeypatch, "resume", finished.path, *words) == 2
    output = capsys.readouterr()
    assert (output.out, output.err.count("\n")) == ("", 1) and message in output.err
    assert finished.manifest.read_bytes() == written
    assert mira(monkeypatch, "resume", finished.path, "--policy", "embedded") == 0, "the run's own: only a report"


@pytest.mark.parametrize(
    ("plays", "says"),
    [
        ([Play(outcome="failure")], "the episode of {} is finished; nothing to resume"),
        ([Play(seed=0), Play(seed=1)], "all 2 episodes of {} are finished; nothing to resume"),
    ],
    ids=["one", "two"],
)
def test_a_resume_of_a_finished_run_says_that_nothing_was_left(
    plays: list[Play],
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It printed the result as if it had played."""
    run = write_run(tmp_path / "r", plays)
    assert mira(monkeypatch, "resume", run.path) == 0
    assert capsys.readouterr().out.startswith(f"{says.format(run.path)}\n")
    assert mira(monkeypatch, "resume", run.path, "--json") == 0
    output = capsys.readouterr()
    assert len(json.loads(output.out)["episodes"]) == len(plays) and output.err == ""


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"approve": []}, "a resume cannot change 'approve': it can change policy, planner"),
        ({"session": {"allow": ["https://a.example"]}}, "a resume cannot change 'session.allow'"),
        ({"limits": {"max_replans": 9}}, "a resume cannot change 'limits.max_replans'"),
        ({"limits": Limits()}, "a resume cannot change 'limits'"),
        ({"limits": {"max_steps": 0}}, "resume: key 'limits.max_steps'"),
        ({"thinking": 3}, "resume: key 'thinking'"),
        ({"retry_window_s": 500}, "retry_window_s = 500: a model call ends after model_deadline_s = 120 s"),
    ],
)
async def test_other_settings_cannot_be_changed(finished: RunFolder, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=re.escape(message)):
        await resume(finished.path, **settings)


def test_a_model_in_a_file_does_not_change_a_run_of_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = write_run(tmp_path / "r", [Play(outcome=None)])
    (tmp_path / "f.toml").write_text('policy = "openai:m"')
    assert mira(monkeypatch, "resume", run.path, "--config", tmp_path / "f.toml") == 2
    assert "only --policy changes policy, not --config or --without" in capsys.readouterr().err


def test_a_model_that_cannot_be_used_leaves_the_run_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = at_limit(tmp_path / "r")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    before = run.manifest.read_bytes()
    assert mira(monkeypatch, "resume", run.path, "--policy", "openai:m", "--max-steps", "40") == 2
    assert "OPENAI_API_KEY" in capsys.readouterr().err and run.manifest.read_bytes() == before


def at_limit(folder: Path, suite: str = "miniwob") -> RunFolder:
    """A run whose episode failed at a limit of two steps."""
    run = write_run(folder, [Play(outcome=None, config={"limits": {"max_steps": 2}})])
    run.write_manifest(run.read_manifest().model_copy(update={"suite": suite}))
    with TraceWriter(run.trace(Play().job.episode_id), BlobStore(run.blobs)) as trace:
        totals = Totals(steps=2)
        trace.append(Footer(outcome="failure", ended_by="max_steps", judged_by="checker", totals=totals, at=""))
    return run


def test_thinking_and_timeouts_can_be_changed(tmp_path: Path) -> None:
    """A value for several roles replaces the recorded ones of single roles, as in `mira run`."""
    begun = at_limit(tmp_path / "r").read_manifest()
    of_roles = {"planner_deadline_s": 30.0, "judge_thinking": 256, "policy_thinking": 0}
    begun = begun.model_copy(update={"config": begun.config.model_copy(update=of_roles)})
    one = with_changes(begun, {"judge_thinking": "high", "policy_deadline_s": 9}).config
    assert (one.thinking_of("judge"), one.deadline_s_of("policy"), one.deadline_s_of("planner")) == ("high", 9, 30)
    every = with_changes(begun, {"thinking": 1024, "model_deadline_s": 300, "retry_window_s": 200}).config
    assert (every.thinking_of("judge"), every.thinking_of("policy"), every.retry_window_s) == (1024, 0, 200)
    assert every.deadline_s_of("planner") == 300


def test_options_for_model_calls_reach_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A new thinking budget is refused where the model does not use one; the recorded one of the run is not."""
    run = at_limit(tmp_path / "r")
    manifest = run.read_manifest()
    recorded = {"planner": "none", "judge": "none", "policy_thinking": 1024}
    run.write_manifest(manifest.model_copy(update={"config": manifest.config.model_copy(update=recorded)}))
    before = run.manifest.read_bytes()
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    more = ["--policy", "openai:gpt-4o", "--max-steps", "40"]
    assert mira(monkeypatch, "resume", run.path, *more, "--thinking", "policy=4096") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "policy openai:gpt-4o does not use a thinking budget, here 4096: leave it out" in line
    assert mira(monkeypatch, "resume", run.path, *more, "--model-deadline", "soon") == 2
    assert "--model-deadline 'soon' is not a number of seconds" in capsys.readouterr().err
    assert run.manifest.read_bytes() == before
    monkeypatch.delenv("OPENAI_API_KEY")
    assert mira(monkeypatch, "resume", run.path, *more, "--model-deadline", "300") == 2
    assert "OPENAI_API_KEY" in capsys.readouterr().err, "the recorded budget is no error"


def test_a_world_whose_server_keeps_effects_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = at_limit(tmp_path / "r", suite="browsergym:webarena.310")
    before = run.manifest.read_bytes()
    assert mira(monkeypatch, "resume", run.path, "--max-steps", "40") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "ended by max_steps and cannot continue: the server of browsergym:webarena.310 keeps the effects" in line
    assert run.manifest.read_bytes() == before


def test_a_foreign_run_at_a_limit_asks_for_its_settings_before_it_continues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with keyed(tmp_path / "abroad"):
        run = at_limit(tmp_path / "r")
        manifest = run.read_manifest()
        servers = {"base_url": "http://127.0.0.1:9", "judge_base_url": "http://127.0.0.1:8"}
        sensitive = manifest.config.model_copy(update=servers)
        run.write_manifest(manifest.model_copy(update={"config": sensitive}))
    assert mira(monkeypatch, "resume", run.path, "--max-steps", "40") == 2
    requested = "It requests --base-url http://127.0.0.1:9; --base-url judge=http://127.0.0.1:8: give again"
    assert requested in capsys.readouterr().err


def test_a_new_policy_gets_the_prompts_of_its_model(finished: RunFolder) -> None:
    manifest = finished.read_manifest()

    def after(values: dict[str, Any]) -> RunConfig:
        """The configuration of a run of the embedded model with *values* after a change of its policy."""
        config = with_profile(parse_config({"policy": "embedded", **values}), manifest.suite)
        begun = manifest.model_copy(update={"config": config})
        assert with_changes(begun, {"policy": "embedded"}) is begun
        return with_changes(begun, {"policy": "openai:m"}).config

    fresh = with_profile(parse_config({"policy": "openai:m"}), manifest.suite)
    assert after({}).resolved() == fresh.resolved() and fresh.profile == "large"
    kept = after({"profile": "small", "max_notes": 3})
    assert (kept.profile, kept.max_notes) == ("small", 3), "what was chosen stays"


@pytest.mark.parametrize("ended_by", ["max_steps", "stop"])
def test_only_the_footer_of_a_limit_or_a_resumable_one_is_continued(tmp_path: Path, ended_by: EndedBy) -> None:
    run = write_run(tmp_path / "r", [Play(outcome=None)])
    path = run.trace(Play().job.episode_id)
    with TraceWriter(path, BlobStore(run.blobs)) as trace:
        trace.append(Footer(outcome="failure", ended_by=ended_by, judged_by="none", totals=Totals(steps=2), at=""))
        trace.append(TraceEvent(step=2, name="resumed", at=""))
    if ended_by == "stop":
        with pytest.raises(TraceError, match="event after the footer"):
            read_trace(path)
    else:
        assert read_trace(path).footer is None
