"""The documentation site builds without a warning, loads nothing from other hosts, and its reference is complete."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from importlib import import_module
from inspect import isclass, isfunction
from pathlib import Path
from typing import Any

import pytest
import typer

import agent
from agent.cli.app import application
from agent.config import RunConfig
from envs.browser.chromium import NAMES
from envs.core.action_languages import LANGUAGES
from envs.core.actions import ACTION, FORM_FILLING, Stop, Upload
from envs.suites.webarena.accounts import PUBLISHED_ACCOUNTS
from envs.suites.webarena.sites import VARIABLES as SITES
from scripts.docs.actions_reference import action_kinds, actions_page, classes, examples, kind_of, sample
from scripts.docs.api_reference import RULE, SECTIONS, api_pages, identifiers
from scripts.docs.cli_reference import cli_page
from scripts.docs.config_reference import FILES, config_page, keys
from tests.docs.documented import ROOT, imported_names
from tests.timing import HANG_S
from training.loop.arms import ARMS

LOADED = re.compile(r"<(?:script|img|iframe|source)[^>]+src=\"(https?:[^\"]+)\"|<link[^>]+href=\"(https?:[^\"]+)\"")
VARIABLE = r"\b(?:ANTHROPIC|BROWSERGYM|GEMINI|GOOGLE|HF|MIRA|OPENAI|SSL|VLLM|WA|XDG)_[A-Z_]+\b"
"""Names of environment variables."""
NO_MKDOCS = "mkdocs is not installed: the documentation site is not checked (pip install '.[docs]')"


def _leaves(group: Any, path: str) -> list[tuple[str, Any]]:
    if not hasattr(group, "commands"):
        return [(path, group)]
    return [leaf for name, command in group.commands.items() for leaf in _leaves(command, f"{path} {name}")]


def test_the_reference_has_every_command_and_option() -> None:
    page = cli_page()
    for path, command in _leaves(typer.main.get_command(application()), "mira"):
        section = page.split(f"## `{path}`\n", 1)[1].split("\n## ", 1)[0]
        for parameter in command.params:
            assert (parameter.metavar or parameter.opts[0]) in section, f"{path} {parameter.opts}"
    assert re.search(r"^\* .*\.\.\.$", page, re.MULTILINE) is None, "no summary is cut"


def test_the_reference_has_every_key_of_the_configurations() -> None:
    page = config_page()
    for name in RunConfig.model_fields:
        assert re.search(rf"^\| `{name}[.`]", page, re.MULTILINE), name
    for _, _, record in FILES:
        assert len({key.path for key in keys(record)}) == len(list(keys(record)))
    assert "| `limits.max_steps`<br>whole number, ≥ 1, ≤ 10000; `30` |" in page
    assert ":class:`" not in page


def test_the_reference_has_every_action_with_its_arguments_and_forms() -> None:
    page = actions_page()
    kinds = {choice["properties"]["kind"]["const"] for choice in ACTION.json_schema()["$defs"].values()}
    assert {kind_of(record) for record in action_kinds()} == kinds
    for record in action_kinds():
        section = page.split(f"\n## `{kind_of(record)}` ", 1)[1].split("\n## ", 1)[0]
        missing = [name for name in record.model_fields if name != "kind" and f"\n| `{name}` |" not in section]
        assert missing == [], record
        for language in LANGUAGES.values():
            forms = [form for form in language.forms.forms if form.action is record]
            assert forms and all(f"`{language.shape(form)}`" in section for form in forms), record
        assert section.count("Another action may follow") == (record in FORM_FILLING)
    assert ":class:`" not in page


@pytest.mark.parametrize("record", action_kinds(), ids=kind_of)
def test_the_examples_of_an_action_parse_to_it(record: Any) -> None:
    for language, example in zip(LANGUAGES.values(), examples(record), strict=True):
        assert language.parse(example).action == sample(record)


def test_the_reference_has_the_approval_of_an_action() -> None:
    """Three rows of the table in docs/approval.md, derived from the code."""
    found = {kind_of(record): classes(record) for record in action_kinds()}
    assert found["click_at"].always == found["drag_at"].always == ("submit", "navigation", "download")
    assert (found["drag"].always, found["hover"].always, found["hover"].maybe) == (("submit",), (), ("submit",))
    assert classes(Upload).always == ("upload",)
    assert {kind for kind, one in found.items() if not one.asked} == {"stop", "find", "expand", "wait"}
    assert not classes(Stop).always and not classes(Stop).maybe


def test_the_reference_says_which_prompts_offer_an_action() -> None:
    rows = {
        line.split("|")[1].strip(): line
        for line in actions_page().split("## Approval")[0].splitlines()
        if "](#" in line
    }
    assert rows["[`click`](#click)"].endswith("| always | always |")
    assert rows["[`hover`](#hover)"].endswith("| always | never |")
    assert rows["[`answer_dialog`](#answer_dialog)"].endswith("| where a dialog is open | where a dialog is open |")
    assert rows["[`find`](#find)"].endswith("| where the text of the page is shortened | always |")


def test_the_installation_page_has_every_extra() -> None:
    page = (ROOT / "docs/installation.md").read_text(encoding="utf-8")
    table = page.split("\n## Extras\n")[1].split("\n## ")[0]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    listed = {
        name
        for line in table.splitlines()
        for name in re.findall(r"`(\w+)`", line.split("|")[1] if "|" in line else "")
    }
    assert listed == set(project["optional-dependencies"])
    assert f"| Python | {project['requires-python'].removeprefix('>=')} or newer" in page


def test_the_installation_page_has_the_places_of_chromium() -> None:
    page = (ROOT / "docs/installation.md").read_text(encoding="utf-8")
    places = page.split("\n## Chromium\n")[1].split("\n\n")[1]
    assert [name for name in re.findall(r"`([\w-]+)`", places.splitlines()[-1]) if name != "PATH"] == list(NAMES)


def test_every_name_of_the_reference_can_be_imported() -> None:
    assert len(api_pages()) == len(SECTIONS)
    for module in {module for _, _, modules in SECTIONS for module in modules}:
        assert identifiers(module), f"{module} has nothing to show"
        for identifier in identifiers(module):
            assert hasattr(import_module(module), identifier.removeprefix(f"{module}."))


def test_the_reference_has_every_name_that_documented_programs_import() -> None:
    listed = {name for _, _, modules in SECTIONS for module in modules for name in identifiers(module)}
    missing = {(str(path), name) for path, name in imported_names() if name not in listed}
    assert missing == {("tests/data/acme/acme/suite.py", "envs.suites.miniwob.suite.MiniwobSuite")}


def test_the_reference_has_the_modules_that_package_authors_need() -> None:
    listed = {module for _, _, modules in SECTIONS for module in modules}
    page = (ROOT / "docs/howto/extend.md").read_text(encoding="utf-8")
    named = set(re.findall(r"#.* ((?:envs|judges|models|planners|training)(?:\.[a-z_]+)+)", page))
    assert len(named) >= 6
    assert named <= listed


def test_every_class_and_function_of_the_reference_has_a_docstring() -> None:
    modules = {module for _, _, listed in SECTIONS for module in listed}
    values = {
        name: getattr(import_module(module), name.rpartition(".")[2])
        for module in modules
        for name in identifiers(module)
    }
    found = {name: value for name, value in values.items() if isclass(value) or isfunction(value)}
    assert len(found) > 100
    assert {name for name, value in found.items() if not _own_docstring(value)} == set()


def _own_docstring(value: Any) -> bool:
    """Whether *value* has a docstring that is neither inherited nor the signature that `dataclass` writes."""
    text = vars(value).get("__doc__") if isclass(value) else value.__doc__
    return bool(text) and not text.startswith(f"{value.__name__}(")


def test_one_rule_says_what_is_stable() -> None:
    assert RULE in " ".join((agent.__doc__ or "").split())
    assert all(RULE in page for page in api_pages().values())
    assert RULE in " ".join((ROOT / "docs/howto/extend.md").read_text(encoding="utf-8").split())


def test_every_environment_variable_is_documented() -> None:
    page = (ROOT / "docs/environment.md").read_text(encoding="utf-8")
    sources = [path for room in ("agent", "envs", "models", "training") for path in (ROOT / room).rglob("*.py")]
    quoted = re.compile(rf"[\"']({VARIABLE})[\"']")
    read = {name for path in sources for name in quoted.findall(path.read_text(encoding="utf-8"))}
    read |= {f"{SITES[site]}_{part}" for site in PUBLISHED_ACCOUNTS for part in ("USERNAME", "PASSWORD")}
    assert len(read) > 20
    pages = [*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")]
    mentioned = {name for path in pages for name in re.findall(VARIABLE, path.read_text(encoding="utf-8"))}
    assert {name for name in read | mentioned if f"`{name}`" not in page} == set()
    of_webarena = {name for name in re.findall(VARIABLE, page) if name.startswith("WA_")}
    assert of_webarena <= read, "the page names variables that nothing reads"


def test_the_comparison_of_the_readme_is_the_one_whose_sources_are_given() -> None:
    tables = [_comparison(ROOT / name) for name in ("README.md", "docs/comparison.md")]
    assert tables[0] == tables[1]
    sources = (ROOT / "docs/comparison.md").read_text(encoding="utf-8").split("## Where each cell comes from")[1]
    rows = len(re.findall(r"^\| [^|-]+ \|", sources, re.MULTILINE)) - 1  # less the head
    assert rows >= len(tables[0]) - 2, "every row has sources, except the size of the community"


def _comparison(path: Path) -> list[str]:
    lines = path.read_text(encoding="utf-8").splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("| | Mira |"))
    table = lines[start : lines.index("", start)]
    return [table[0], *table[2:]]


@pytest.mark.slow
def test_the_site_builds_without_a_warning_and_loads_nothing_from_other_hosts(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs", reason=NO_MKDOCS)
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")],
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )
    assert (done.returncode, re.findall(r"^WARNING.*", done.stderr, re.MULTILINE)) == (0, []), done.stderr
    built = list((tmp_path / "site").rglob("*.html"))
    assert len(built) > 40
    for page in built:
        text = page.read_text(encoding="utf-8")
        assert [url for match in LOADED.findall(text) for url in match if url] == [], page
        assert re.search(r":(func|class|mod|meth|attr):", text) is None, page


BANNED = ("below the model", "model that sees", "models that see", "the world or a model", "hopeless", "mira-web[")
"""Phrases that readers did not understand, or that are wrong. The pages say environment, vision-language model, …"""


def test_pages_use_standard_terms() -> None:
    pages = [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", ROOT / "SECURITY.md", ROOT / "CONTRIBUTING.md"]
    texts = {page: " ".join(page.read_text(encoding="utf-8").lower().split()) for page in pages}
    assert {(page.name, phrase) for page, text in texts.items() for phrase in BANNED if phrase in text} == set()


def test_every_arm_has_a_row_and_an_unmeasured_one_says_so() -> None:
    page = (ROOT / "docs/baselines.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \|", page.split("## All arms")[0], re.MULTILINE)
    assert rows == list(ARMS)
    results = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs/results").glob("*.md"))
    assert "webrl_code" not in results, "measured now: say so in docs/baselines.md"
    assert "has not been measured" in page.split("**`webrl_code`**")[1].split("\n\n")[0]


def test_links_of_the_pages_at_the_root_lead_to_files_and_headings() -> None:
    """MkDocs checks the links of the site; the README is no page of it."""
    missing: set[tuple[str, str]] = set()
    for page in ROOT.glob("*.md"):
        for target in re.findall(r"\]\(([^):\s]+)\)", page.read_text(encoding="utf-8")):
            name, _, anchor = target.partition("#")
            path = page.parent / name if name else page
            if not path.exists() or (anchor and anchor not in _anchors(path)):
                missing.add((page.name, target))
    assert missing == set()


def _anchors(path: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower()) for heading in headings}


def test_the_pages_that_were_one_say_what_they_are_for() -> None:
    """Parts of docs/architecture.md and docs/howto/models.md, and the pages for newcomers."""
    names = ("approval", "architecture", "boundary", "installation", "observation", "planning", "prompts", "trace")
    guides = ("howto/models", "howto/prompt-profiles", "howto/thinking", "howto/vision", "troubleshooting")
    for name in (*names, *guides):
        text = (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
        assert text.split("\n\n")[1].startswith("This page "), name
        assert len(text.split()) < 2_200, f"{name} has become long: split it by subject"


def test_every_page_begins_with_a_heading() -> None:
    pages = [*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")]
    assert [str(page) for page in pages if not page.read_text(encoding="utf-8").startswith("# ")] == []


def test_the_glossary_defines_each_term_once_and_in_order() -> None:
    text = (ROOT / "docs/glossary.md").read_text(encoding="utf-8")
    sections = [re.findall(r"^\*\*(.+)\*\*$", part, re.MULTILINE) for part in text.split("\n## ")[1:]]
    terms = [term for section in sections for term in section]
    assert len(set(terms)) == len(terms) > 60
    for section in sections:
        assert section == sorted(section, key=str.lower)
