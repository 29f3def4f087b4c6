"""Edited traces are refused for training, by every command that learns from traces; unedited ones are accepted."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.run.discover_traces import EpisodeFile, discover_traces
from agent.run.run_store import RunFolder
from envs.core.errors import TraceError
from envs.core.tasks import TaskRef
from envs.importing.episodes import ForeignEpisode, write_episodes
from tests.agent.episodes import Play, write_run
from tests.envs.core.edits import EDITS, Edit, rechained, rewrite, unchained
from tests.mira_command import mira
from training.data.trajectories import select
from training.embedded.lessons import lessons_of
from training.grpo.from_traces import ExampleOptions, extract_examples

FAILED, WON = Play(outcome="failure"), Play(seed=1)


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return write_run(tmp_path / "r", [FAILED, WON])


def failed(run: RunFolder) -> Path:
    return run.trace(FAILED.job.episode_id)


@pytest.mark.parametrize(("edit", "line"), EDITS.values(), ids=EDITS)
@pytest.mark.parametrize("reader", ["trajectories", "examples", "lessons"])
def test_every_edit_is_refused_by_every_reader(
    run: RunFolder, tmp_path: Path, edit: Edit, line: int, reader: str
) -> None:
    def learned() -> int:
        if reader == "lessons":
            lessons_of([run.path])  # of an oracle's traces alone there are any
            return 1
        traces = ((file.read(), file.blobs) for file in discover_traces([run.path]))
        if reader == "trajectories":
            return len(select(traces).kept)
        return len(extract_examples(traces, ExampleOptions("step"), tmp_path / "images").examples)

    assert learned() > 0, "control: an unedited trace is accepted"
    rewrite(failed(run), edit)
    with pytest.raises(TraceError) as refused:
        learned()
    assert str(failed(run)) in str(refused.value) and "\n" not in str(refused.value)
    if "chain:" in str(refused.value):
        assert f"{failed(run)}:{line}: chain: " in str(refused.value)


COMMANDS = {
    "sft": ["train", "sft", "RUN", "-o", "OUT", "--allow-evaluation"],
    "examples": ["train", "examples", "RUN", "-o", "OUT.jsonl", "--allow-evaluation"],
    "mira": ["train", "mira", "-c", "tiny", "-o", "OUT", "--set", "phases=0", "--set", 'demonstrations=["RUN"]'],
}
TRIED = ["outcome", "reward", "text of the action", "result", "a step removed", "an event added"]


@pytest.mark.parametrize("name", TRIED)
@pytest.mark.parametrize("command", COMMANDS)
def test_commands_refuse_an_edited_trace_in_one_line(  # noqa: PLR0917 - fixtures
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    run: RunFolder,
    tmp_path: Path,
    command: str,
    name: str,
) -> None:
    edit, line = EDITS[name]
    rewrite(failed(run), edit)
    words = [w.replace("RUN", str(run.path)).replace("OUT", str(tmp_path / "out")) for w in COMMANDS[command]]
    assert mira(monkeypatch, *words) == 2
    printed = capsys.readouterr().err.strip().splitlines()
    assert f"{failed(run)}:{line}: chain: " in printed[-1]
    assert not list(tmp_path.glob("out*/model")) and not (tmp_path / "out.jsonl").exists()


def test_unedited_traces_are_accepted_by_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], run: RunFolder, tmp_path: Path
) -> None:
    words = ["train", "examples", run.path, "-o", tmp_path / "steps.jsonl", "--allow-evaluation"]
    assert mira(monkeypatch, *words) == 0
    printed = capsys.readouterr()
    assert "not written on this machine" not in printed.err + printed.out and "chain" not in printed.err + printed.out
    assert (tmp_path / "steps.jsonl").read_text().count("\n") >= 1


@pytest.mark.parametrize(
    ("edit", "notice"),
    [
        pytest.param(unchained(version=3), "1 of 2 traces have no hash chain", id="recorded before the chain"),
        pytest.param(rechained(lambda lines: lines), "1 of 2 traces were not written on", id="another machine's"),
        pytest.param(
            rechained(EDITS["outcome"][0]), "1 of 2 traces were not written on", id="edited, chain recomputed"
        ),
    ],
)
def test_traces_of_unknown_origin_are_accepted_and_counted(  # noqa: PLR0917 - fixtures
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    run: RunFolder,
    tmp_path: Path,
    edit: Edit,
    notice: str,
) -> None:
    rewrite(failed(run), edit)
    words = ["train", "examples", run.path, "-o", tmp_path / "steps.jsonl", "--allow-evaluation"]
    assert mira(monkeypatch, *words) == 0
    printed = capsys.readouterr()
    assert (printed.out + printed.err).count(notice) == 1


def test_a_trace_cut_short_is_not_learned_from(run: RunFolder) -> None:
    """The chain of a truncated trace is valid; without a footer it is an unfinished episode."""
    for path in run.traces():
        rewrite(path, lambda lines: lines[:-1])
    selection = select((file.read(), file.blobs) for file in discover_traces([run.path]))
    assert (selection.kept, sum(selection.left_out.values())) == ((), 2)


def test_imported_traces_have_a_chain_and_no_mark(tmp_path: Path) -> None:
    episode = ForeignEpisode(
        source="webarena",
        task=TaskRef(suite="webarena", name="310"),
        instruction="Buy",
        category="shop",
        policy="gpt",
        outcome="success",
        ended_by="stop",
        evidence="the log says so",
    )
    (path,) = write_episodes([episode], tmp_path / "out")
    seal = EpisodeFile(path).read().seal
    assert (seal.chained, seal.edited, seal.own_header, seal.own) == (True, None, False, False)
    assert select([(EpisodeFile(path).read(), EpisodeFile(path).blobs)]).provenance.foreign == 1
    rewrite(path, lambda lines: [*lines[:-1], lines[-1].replace(b'"success"', b'"failure"', 1)])
    with pytest.raises(TraceError, match=f"{path.name}:2: chain: "):
        select([(EpisodeFile(path).read(), EpisodeFile(path).blobs)])


def test_show_reports_a_recomputed_chain(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], run: RunFolder
) -> None:
    assert mira(monkeypatch, "show", failed(run)) == 0
    assert "not written on this machine" not in capsys.readouterr().out, "the control"
    rewrite(failed(run), rechained(EDITS["outcome"][0]))
    assert mira(monkeypatch, "show", failed(run)) == 0
    assert "not written on this machine, or its hash chain was recomputed" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "stream"),
    [
        (["show", "RUN"], "err"),
        (["show", "TRACE"], "out"),
        (["show", "TRACE", "--json"], "err"),
        (["report", "RUN"], "err"),
        (["compare", "RUN", "RUN"], "out"),
    ],
)
def test_reading_commands_report_an_edited_trace(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    run: RunFolder,
    words: list[str],
    stream: str,
) -> None:
    def printed() -> str:
        notice = [word.replace("RUN", str(run.path)).replace("TRACE", str(failed(run))) for word in words]
        assert mira(monkeypatch, *notice) == 0
        return " ".join(getattr(capsys.readouterr(), stream).split())

    assert "changed after it was written" not in printed(), "the control"
    rewrite(failed(run), EDITS["outcome"][0])
    assert "changed after it was written" in printed()
    if words[0] == "report":
        assert "changed after it was written" in (run.path / "report.html").read_text()
