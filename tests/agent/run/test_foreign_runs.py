"""A foreign run folder or trace gets nothing of this machine: no secret, file, key or request.

Each sensitive setting is tested alone with `mira resume`, `mira replay` and `mira replay --branch`: all others are
given again, and it must be refused. Controls: the same folder written on this machine, and the same command with that
setting given again, send the data, so the foreign server would have received it.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.config import ROLES
from agent.inspection.replay import branch_trace, replay_trace
from agent.inspection.replay.playback import permitted_to_play, read_recording
from agent.run.foreign_resume import preview_resume
from agent.run.foreign_runs import ForeignRun
from agent.run.runner import resume
from envs.core.errors import BadInput
from tests.agent.foreign_machine import Machine, environment_of, keyed, write_shared_run, write_shared_trace
from tests.agent.mira_process import run_mira
from tests.mira_command import mira

SESSION = ("session.allow", "session.storage_state", "session.upload_folder", "session.http_credentials")
REPLAYED = ("url", "secrets", *SESSION, "session.ignore_https_errors")
BRANCHED = (*REPLAYED, "planner", "judge", "base_url", "answer_schema", "langsmith")
RESUMED = (*BRANCHED, "policy")
REQUESTED = {"resume": RESUMED, "replay": REPLAYED, "branch": BRANCHED}
UNSEEN = "session.ignore_https_errors"
"""Sends nothing in these tests, where no server has a certificate; it must be refused too."""


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    machine = Machine(tmp_path_factory.mktemp("home"))
    yield machine
    machine.close()


@pytest.fixture(scope="module")
def abroad(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the foreign machine's key."""
    return tmp_path_factory.mktemp("abroad")


def words_of(machine: Machine, command: str, place: Path, out: Path) -> list[str]:
    match command:
        case "resume":
            return ["resume", str(place)]
        case "replay":
            return ["replay", str(place), "--yes"]
        case _:
            branch = ["--branch", machine.values["policy"], "--at", "1", "--out", str(out / "branched")]
            return ["replay", str(place), "--yes", *branch]


def options_for(machine: Machine, names: tuple[str, ...], out: Path) -> list[str]:
    """Command-line options that give *names* again."""
    values, session = machine.values, machine.values["session"]
    table: list[str] = []
    if "session.http_credentials" in names:
        origin, value = session["http_credentials"].values()
        table.append(f'http_credentials = {{origin = "{origin}", value = "{value}"}}')
    table += ["ignore_https_errors = true"] if UNSEEN in names else []
    (out / "again.toml").write_text("[session]\n" + "\n".join(table))
    options: dict[str, list[str]] = {
        "url": ["--url", machine.server.url],
        "policy": ["--policy", values["policy"]],
        "planner": ["--planner", values["planner"]],
        "judge": ["--judge", values["judge"]],
        "base_url": ["--base-url", values["base_url"]],
        "secrets": [word for secret in values["secrets"] for word in ("--secret", secret)],
        "answer_schema": ["--schema", values["answer_schema"]],
        "langsmith": ["--langsmith"],
        "session.allow": ["--allow", session["allow"][0]],
        "session.storage_state": ["--storage-state", session["storage_state"]],
        "session.upload_folder": ["--upload-folder", session["upload_folder"]],
    }
    known = [word for name in names for word in options.get(name, ())]
    return [*known, "--config", str(out / "again.toml")] if table else known


def write(machine: Machine, command: str, out: Path) -> Path:
    """Writes the foreign run folder or trace."""
    if command == "resume":
        return write_shared_run(machine, out / "shared").path
    return write_shared_trace(machine, out / "shared.jsonl")


def mira_on(machine: Machine, words: list[str]) -> subprocess.CompletedProcess[str]:
    return run_mira(*words, env=environment_of(machine))


def refused(
    machine: Machine, words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> str:
    """Output of the command, which must refuse without sending anything."""
    for name, value in machine.environment.items():
        monkeypatch.setenv(name, value)
    machine.listen()
    code = mira(monkeypatch, *words)
    output = capsys.readouterr()
    assert (code, output.out) == (2, "")
    assert output.err.count("\n") == 1, output.err
    assert machine.nothing_came()
    return output.err


OPTIONS = {
    "url": "--url",
    "policy": "--policy",
    "planner": "--planner",
    "judge": "--judge",
    "base_url": "--base-url",
    "secrets": "--secret",
    "answer_schema": "--schema",
    "langsmith": "--langsmith",
    "session.allow": "--allow",
    "session.storage_state": "--storage-state",
    "session.upload_folder": "--upload-folder",
    "session.http_credentials": "--config FILE with session.http_credentials",
    "session.ignore_https_errors": "--config FILE with session.ignore_https_errors",
}


@pytest.mark.parametrize(
    ("command", "name"), [(command, name) for command, names in REQUESTED.items() for name in names]
)
def test_a_setting_that_was_not_given_again_is_refused_and_nothing_is_sent(  # noqa: PLR0917 - fixtures
    machine: Machine,
    abroad: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: str,
    name: str,
) -> None:
    with keyed(abroad):
        place = write(machine, command, tmp_path)
    others = tuple(other for other in REQUESTED[command] if other != name)
    words = [*words_of(machine, command, place, tmp_path), *options_for(machine, others, tmp_path)]
    output = refused(machine, words, monkeypatch, capsys)
    assert f"It requests {OPTIONS[name]}" in output and f"{place} was not written on this machine" in output
    assert not any(
        f"{option} " in output.partition(": give again")[0] for key, option in OPTIONS.items() if key != name
    )


@pytest.mark.parametrize("command", REQUESTED)
def test_all_is_refused_at_once_with_its_real_addresses(  # noqa: PLR0917 - fixtures
    machine: Machine,
    abroad: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: str,
) -> None:
    with keyed(abroad):
        place = write(machine, command, tmp_path)
    output = refused(machine, words_of(machine, command, place, tmp_path), monkeypatch, capsys)
    requested = output.partition("It requests ")[2]
    assert requested.startswith(f"--url {machine.server.url}"), "the address that would be used comes first"
    assert all(OPTIONS[name] in requested for name in REQUESTED[command])


def expected(command: str) -> set[str]:
    names = set(REQUESTED[command]) - {UNSEEN, "secrets"} | {"secrets (env)", "secrets (file)"}
    return names | ({"policy"} if command == "branch" else set[str]())


@pytest.mark.browser
@pytest.mark.parametrize("command", REQUESTED)
@pytest.mark.parametrize("how", ["written here", "given again"])
def test_control_every_setting_arrives_from_an_own_run_and_where_it_is_given_again(
    machine: Machine, abroad: Path, tmp_path: Path, command: str, how: str
) -> None:
    """Without the check, each setting refused above would have been sent."""
    if how == "written here":
        place, again = write(machine, command, tmp_path), []
    else:
        with keyed(abroad):
            place = write(machine, command, tmp_path)
        again = options_for(machine, REQUESTED[command], tmp_path)
    machine.listen()
    done = mira_on(machine, [*words_of(machine, command, place, tmp_path), *again])
    assert machine.taken() == expected(command), done.stderr
    reported = "was not written on this machine" in done.stderr
    assert reported == (how == "given again"), done.stderr
    if reported:  # what is used is said before anything is
        first = done.stderr.splitlines()[0]
        assert f"--url {machine.server.url}" in first and "--upload-folder" in first


@pytest.mark.browser
@pytest.mark.parametrize("command", ["resume", "replay"])
def test_what_is_left_out_by_name_does_not_arrive(machine: Machine, abroad: Path, tmp_path: Path, command: str) -> None:
    with keyed(abroad):
        place = write(machine, command, tmp_path)
    left = ("session.storage_state", "session.upload_folder", UNSEEN)
    others = tuple(other for other in REQUESTED[command] if other not in left)
    words = [*words_of(machine, command, place, tmp_path), *options_for(machine, others, tmp_path)]
    machine.listen()
    mira_on(machine, [*words, "--without", "storage_state,session.upload_folder,ignore-https-errors"])
    assert machine.taken() == expected(command) - set(left)


def test_a_schema_in_place_of_a_file_is_taken_from_a_foreign_run_and_may_be_given_again(
    machine: Machine, abroad: Path, tmp_path: Path
) -> None:
    schema = {"type": "object", "properties": {}, "default": None}
    config = machine.config(answer_schema=schema)
    with keyed(abroad):
        foreign = write_shared_run(machine, tmp_path / "foreign", config)
    with pytest.raises(ForeignRun) as refusal:
        preview_resume(foreign, {}, {})
    assert {field.name for field in refusal.value.fields} == set(RESUMED) - {"answer_schema"}
    own = write_shared_run(machine, tmp_path / "own", config)
    assert preview_resume(own, {"answer_schema": json.dumps(schema)}, {}) is not None
    with pytest.raises(BadInput, match="leave out --schema"):
        preview_resume(own, {"answer_schema": "{}"}, {})


def test_a_replay_needs_no_grant_for_models_and_their_servers(machine: Machine, abroad: Path, tmp_path: Path) -> None:
    servers = {f"{role}_base_url": machine.server.url for role in ROLES}
    config = machine.config(rater="openai:rater-m", grounder="openai:grounder-m", **servers)
    with keyed(abroad):
        trace = write_shared_trace(machine, tmp_path / "shared.jsonl", config=config)
    with pytest.raises(ForeignRun) as caught:
        permitted_to_play(read_recording(trace), {})
    assert {field.name for field in caught.value.fields} == {*REPLAYED}


async def test_from_python_a_foreign_run_is_a_typed_refusal_that_names_the_fields(
    machine: Machine, abroad: Path, tmp_path: Path
) -> None:
    with keyed(abroad):
        folder, trace = write(machine, "resume", tmp_path), write(machine, "replay", tmp_path)
    machine.listen()
    calls: dict[str, Any] = {
        "resume": lambda: resume(folder),
        "replay": lambda: replay_trace(trace, may_act=True),
        "branch": lambda: branch_trace(trace, "openai:policy-m", 1, may_act=True, out=tmp_path / "out"),
    }
    for command, call in calls.items():
        with pytest.raises(ForeignRun) as refusal:
            await call()
        assert {field.name for field in refusal.value.fields} == set(REQUESTED[command])
    with pytest.raises(ForeignRun) as refusal:
        await resume(folder, granted_settings=machine.values | {"session": {}})
    assert {field.name for field in refusal.value.fields} == {"url", *SESSION, UNSEEN}
    with pytest.raises(ForeignRun) as refusal:
        await resume(folder, granted_settings=machine.values | {"url": None})
    assert [field.name for field in refusal.value.fields] == ["url"]
    assert machine.nothing_came()
