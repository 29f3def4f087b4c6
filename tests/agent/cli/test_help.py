"""`mira --help`, `--version` and shell completion import no command, and show every command correctly."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module, metadata
from pathlib import Path
from typing import Any, get_type_hints

import pytest
import typer

from agent.cli.app import COMMANDS, Place, application, command_name, completed_words
from agent.cli.run import run
from agent.config import RunConfig
from tests.timing import HANG_S
from training.grpo.settings import load_settings as load_grpo
from training.loop.settings import load_settings as load_loop

ROOT = Path(__file__).parents[3]
MIRA = "import sys; sys.argv[0] = 'mira'; from agent.cli import main; main()"
HEAVY = (
    "numpy",
    "torch",
    "transformers",
    "playwright",
    "langgraph",
    "envs.core.actions",
    "agent.config",
    "models.base",
)


def _leaves(group: Any, path: str = "mira") -> Iterator[tuple[str, Any]]:
    for name, command in getattr(group, "commands", {}).items():
        yield f"{path} {name}", command
        yield from _leaves(command, f"{path} {name}")


HELP = dict(_leaves(typer.main.get_command(application())))


def mira(*words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", MIRA, *words],
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "200", **environ},
    )


@pytest.mark.parametrize(
    ("words", "environ"),
    [
        pytest.param(["--help"], {}, id="help"),
        pytest.param([], {}, id="no command"),
        pytest.param(["--version"], {}, id="version"),
        pytest.param(
            [], {"_MIRA_COMPLETE": "complete_bash", "COMP_WORDS": "mira\nru", "COMP_CWORD": "1"}, id="complete"
        ),
        pytest.param(["rnu"], {}, id="no such command"),
    ],
)
def test_the_list_of_commands_imports_no_command(words: list[str], environ: dict[str, str]) -> None:
    code = f"import atexit, sys; atexit.register(lambda: print([m for m in {HEAVY} if m in sys.modules])); {MIRA}"
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
        cwd=ROOT,
        env={**os.environ, **environ},
    )
    assert done.stdout.splitlines()[-1] == "[]", "slow imports belong to the command that needs them"


def test_the_help_of_run_states_the_defaults_of_the_configuration() -> None:
    """An option of `mira run` that is not given is None, so its help text states the default of the configuration."""
    defaults = RunConfig().model_dump()
    defaults |= defaults["limits"] | {
        "model_deadline": defaults["model_deadline_s"],
        "retry_window": defaults["retry_window_s"],
        "max_cost": defaults["limits"]["max_cost_usd"],
        "milestones": defaults["k"],
    }
    stated = {
        name: (match[1], defaults[name])
        for name, hint in get_type_hints(run, include_extras=True).items()
        for option in getattr(hint, "__metadata__", ())
        if (match := re.search(r"default: ([^;]+?)[.;]", f"{option.help}.")) and name in defaults
    }
    assert len(stated) >= 18
    for name, (text, default) in stated.items():
        assert text == (f"{default:g}" if isinstance(default, int | float) else default), name


def test_the_help_of_training_states_the_defaults_of_its_settings() -> None:
    """Symptom: `mira train mgrpo --help` named neither the start, the suite nor the number of attempts of a plain
    command."""
    loop, grpo = load_loop(None, ('arm="mgrpo"',)), load_grpo(None, ())
    expected = {
        ("mgrpo", "start"): loop.start,
        ("mgrpo", "suite"): loop.pool.suite,
        ("mgrpo", "tasks"): "all of the suite" if not loop.pool.names else "",
        ("mgrpo", "group"): str(loop.rollouts.attempts),
        ("grpo", "recipe"): grpo.recipe,
        ("plan", "recipe"): grpo.recipe,
    }
    for (command, option), default in expected.items():
        (text,) = (param.help for param in HELP[f"mira train {command}"].params if param.name == option)
        stated = re.search(r"default: ([^,;]+?)[.,;]", text)
        assert stated is not None and stated[1] == default, (command, option, text)


@pytest.mark.parametrize("command", [name for name in HELP if name.startswith("mira train ")])
def test_configurations_and_recipes_state_what_holds_without_them(command: str) -> None:
    for param in HELP[command].params:
        if param.name in ("config", "recipe") and param.param_type_name == "option":
            assert "default" in param.help, (command, param.name)


@pytest.mark.parametrize("module", sorted({place.module for place in COMMANDS.values()}))
def test_the_help_of_a_command_imports_no_heavy_library(module: str) -> None:
    code = f"import sys, {module}; print([m for m in {HEAVY[1:5]} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=HANG_S, check=False, cwd=ROOT
    )
    assert done.stdout == "[]\n", done.stderr


@pytest.mark.parametrize("place", COMMANDS.values(), ids=COMMANDS.keys())
def test_a_summary_is_the_first_paragraph_of_the_help(place: Place) -> None:
    command = getattr(import_module(place.module), place.attribute)
    text = command.info.help if isinstance(command, typer.Typer) else inspect.getdoc(command)
    assert " ".join((text or "").split("\n\n")[0].split()) == place.summary


@pytest.mark.parametrize("command", HELP.values(), ids=HELP)
def test_help_is_one_imperative_sentence_a_line(command: Any) -> None:
    """Symptom: help mixed imperatives, third persons, fragments and questions."""
    summary = command.help.partition("\n\n")[0]
    verb = summary.split()[0]
    assert verb[0].isupper() and not verb.endswith("s") and summary.endswith("."), summary
    assert ". " not in summary, "one sentence"
    assert "\n" not in command.help.replace("\n\n", ""), "the terminal wraps paragraphs"
    for parameter in command.params:
        text = parameter.help
        assert text and text[0] in "`ABCDEFGHIJKLMNOPQRSTUVWXYZ" and text.endswith("."), (parameter.name, text)


@pytest.mark.parametrize("command", HELP.values(), ids=HELP)
def test_each_option_for_an_output_has_the_same_names(command: Any) -> None:
    """Symptom: `-o` was known to `mira train`, and not to `mira run`, `report`, `import` and `eval`."""
    names = [set(option.opts) for option in command.params if option.name in ("out", "to") and option.opts[0] != "out"]
    assert all({"--out", "-o"} <= given for given in names)


def test_help_lists_every_command() -> None:
    output = mira("--help").stdout
    for name, place in COMMANDS.items():
        assert f" {name} " in output and place.summary[:40] in output


@pytest.mark.parametrize(
    "words", [["--help", "run"], ["run", "--help"], ["train", "--help"], ["train", "sft", "--help"]]
)
def test_a_command_has_its_own_help(words: list[str]) -> None:
    done = mira(*words)
    assert done.returncode == 0 and "Usage: mira" in done.stdout


def test_version() -> None:
    done = mira("--version")
    assert (done.returncode, done.stdout) == (0, f"mira {metadata.version('mira-web')}\n")


@pytest.mark.parametrize(
    ("words", "name"),
    [([], ""), (["--help"], ""), (["run"], "run"), (["run", "x"], "run"), (["--help", "run"], "run"), (["x"], "x")],
)
def test_the_name_of_the_requested_command(words: list[str], name: str) -> None:
    assert command_name(words) == name


@pytest.mark.parametrize(
    ("environ", "words"),
    [
        ({"COMP_WORDS": "mira\n"}, []),
        ({"COMP_WORDS": "mira\nru"}, []),
        ({"COMP_WORDS": "mira\nrun\n"}, ["run"]),
        ({"COMP_WORDS": "mira\nrun\n--po"}, ["run", "--po"]),
        ({"_TYPER_COMPLETE_ARGS": "mira train "}, ["train"]),
        ({"_TYPER_COMPLETE_ARGS": "mira tr"}, []),
        ({}, []),
    ],
)
def test_the_command_line_to_complete(environ: dict[str, str], words: list[str]) -> None:
    assert completed_words(environ) == words


def completed(shell: str, line: str) -> str:
    if shell == "bash":
        words = line.split(" ")
        environ = {"COMP_WORDS": "\n".join(words), "COMP_CWORD": str(len(words) - 1)}
    else:
        word = {"_TYPER_COMPLETE_WORD_TO_COMPLETE": line.rpartition(" ")[2]}
        environ = {"_TYPER_COMPLETE_ARGS": line, "_TYPER_COMPLETE_FISH_ACTION": "get-args", **word}
    done = mira(_MIRA_COMPLETE=f"complete_{shell}", **environ)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("shell", "line", "offered", "not_offered"),
    [
        ("bash", "mira re", ["resume", "replay", "report"], "show"),
        ("bash", "mira run --pl", ["--planner"], "--policy"),
        ("bash", "mira train m", ["mira", "mgrpo"], "sft"),
        ("bash", "mira train mira --co", ["--config"], "--out"),
        ("bash", "mira sites u", ["up"], "down"),
        ("bash", "mira --ver", ["--version"], "run"),
        ("zsh", "mira re", ["resume", "replay"], "show"),
        ("zsh", "mira run --pl", ["--planner"], "--policy"),
        ("fish", "mira re", ["resume", "replay"], "show"),
        ("fish", "mira run --pl", ["--planner"], "--policy"),
        ("powershell", "mira re", ["resume", "replay"], "show"),
    ],
)
def test_completion_offers_commands_and_options(shell: str, line: str, offered: list[str], not_offered: str) -> None:
    output = completed(shell, line)
    assert all(word in output for word in offered) and not_offered not in output


def test_completion_in_a_real_shell(tmp_path: Path) -> None:
    """Completion is installed, sourced and called like bash does on Tab."""
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "mira"
    program.write_text(f"#!{sys.executable}\nfrom agent.cli import main\nmain()\n")
    program.chmod(0o755)
    environ = {**os.environ, "HOME": str(tmp_path), "PATH": f"{program.parent}:{os.environ['PATH']}"}
    environ["PYTHONPATH"] = str(ROOT)
    ask = 'COMP_WORDS=(mira run --js); COMP_CWORD=2; _mira_completion mira; echo "${COMPREPLY[@]}"'
    lines = f"mira --install-completion && . ~/.bashrc && {ask} && mira --show-completion"
    done = subprocess.run(
        ["bash", "-c", lines], capture_output=True, text=True, timeout=HANG_S, check=False, env=environ
    )
    assert done.returncode == 0, done.stderr
    assert "\n--json\n" in done.stdout and "_mira_completion() {" in done.stdout.partition("--json")[2]


def test_options_that_a_resume_takes_for_runs_of_another_machine_only_say_so() -> None:
    """A run of this machine refuses every such option whose value differs from its own, see `apply_grants`."""
    only_granted = {f"--{name}" for name in ("url", "suite", "parent", "allow", "secret", "storage-state", "config")}
    only_granted |= {"--upload-folder", "--schema", "--langsmith", "--without", "--tools"}
    options = [option for option in HELP["mira resume"].params if option.opts[0].startswith("--")]
    helps = {option.opts[0]: option.help for option in options}
    prefixed = {name for name, text in helps.items() if text.startswith("For a run of another machine: ")}
    assert prefixed == only_granted
