"""`-c NAME`: configurations that ship with the package, from any folder."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from envs.core.errors import BadInput
from tests.mira_command import mira
from training.configs import HERE, config_file, config_names
from training.loop.arms import ARMS
from training.loop.settings import load_settings

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A folder without the repository, as with an installed wheel."""
    monkeypatch.chdir(tmp_path)


def test_every_configuration_has_a_name() -> None:
    assert set(config_names()) == {path.stem for path in (ROOT / "training" / "configs").glob("*.toml")}
    assert {"smoke", "tiny", "gemma3-12b"} <= set(config_names())


@pytest.mark.parametrize("word", ["smoke", "smoke.toml", "training/configs/smoke.toml", "./smoke"])
def test_a_configuration_is_found_from_any_folder(word: str) -> None:
    """`-c training/configs/smoke.toml` did not exist where the package was installed from a wheel."""
    assert config_file(word) == HERE / "smoke.toml"
    assert load_settings(config_file(word)).phases == 2


def test_a_file_goes_before_a_name(tmp_path: Path) -> None:
    for name in ("smoke", "smoke.toml"):
        (tmp_path / name).write_text("phases = 5\n")
        assert load_settings(config_file(name)).phases == 5
    own = tmp_path / "own" / "smoke.toml"
    own.parent.mkdir()
    own.write_text("phases = 7\n")
    assert load_settings(config_file(str(own))).phases == 7


@pytest.mark.parametrize("word", ["smok", "nowhere.toml", "other/smoke.toml", "training/configs/smok.toml", "."])
def test_an_unknown_name_lists_the_known_ones(word: str) -> None:
    with pytest.raises(BadInput, match=re.escape(f"{word!r} does not exist")) as error:
        config_file(word)
    assert str(error.value).endswith(", ".join(config_names()))


@pytest.mark.parametrize("name", config_names())
def test_regression_arms_of_a_configuration_have_one_rate(name: str) -> None:
    """Arms of one objective that differ in the rate, too, cannot be compared. `mira_anchored` also maximizes a
    likelihood, and has the rate of cloning."""
    rates = {
        arm: settings.actor.optimization.learning_rate
        for arm in ARMS
        if (settings := load_settings(config_file(name), [f"arm={arm}"])).actor.objective.kind == "regression"
    }
    anchored = rates.pop("mira_anchored")
    assert {"mira", "mira_credit", "mira_group_value", "webrl_paper"} <= rates.keys()
    assert len(set(rates.values())) == 1, rates
    cloning = load_settings(config_file(name), ["arm=filtered_bc"]).actor.optimization.learning_rate
    assert anchored in (rates["mira"], cloning)


def test_the_command_takes_names(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert mira(monkeypatch, "train", "mira", "-c", "smoke", "--set", "phases=-1", "-o", "out") == 2
    assert "key 'phases'" in capsys.readouterr().err, "the file was read"
    assert mira(monkeypatch, "train", "mira", "-c", "smok", "-o", "out") == 2
    assert "one of embedded, gemma3-12b, " in capsys.readouterr().err


def test_configurations_are_data_of_a_package() -> None:
    """setuptools finds packages by their `__init__.py` and includes files of these types."""
    setuptools = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    assert (HERE / "__init__.py").is_file() and "training*" in setuptools["packages"]["find"]["include"]
    assert "*.toml" in setuptools["package-data"]["*"]
