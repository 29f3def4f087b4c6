"""Curves of training runs."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from envs.core.errors import BadInput
from training.loop.evaluation.curves import CHARTS, COLOURS, Curve, by_seed, drawn, mean_of, phase_curve, write_curves
from training.loop.metrics import PhaseMetrics, PlayedRun

SVG = "{http://www.w3.org/2000/svg}"


def played(successes: int, *, broken: int = 0, stuck: int = 0) -> PlayedRun:
    failures = {"stuck_midway": stuck, "other": 10 - broken - successes - stuck}
    return PlayedRun(episodes=10, successes=successes, broken=broken, steps=3.0, progress=None, failures=failures)


def curve(arm: str, seed: int, *held_out: int | None) -> Curve:
    """A run whose phase n solved *held_out*[n] of ten, where it was evaluated."""
    phases = [
        PhaseMetrics(
            phase=number,
            evaluation=None if solved is None else played(solved),
            rollouts=None if number == 0 else played(5, broken=2, stuck=number),
        )
        for number, solved in enumerate(held_out)
    ]
    return phase_curve(arm, seed, phases)


def test_rates_are_of_judged_episodes() -> None:
    held_out, rollouts, stuck = (by_seed([curve("mira", 0, 4, None, 6)], chart)["mira"] for chart in CHARTS)
    assert held_out == [{0: 0.4, 2: 0.6}], "the second phase was not evaluated"
    assert rollouts == [{1: 5 / 8, 2: 5 / 8}], "two episodes are broken"
    assert stuck == [{1: 1 / 8, 2: 2 / 8}]


def test_an_arm_is_the_mean_of_its_seeds_at_common_phases() -> None:
    assert mean_of([{0: 0.4, 3: 0.5, 6: 0.9}, {0: 0.2, 3: 0.7}]) == pytest.approx({0: 0.3, 3: 0.6})


def points(line: ElementTree.Element) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in (pair.split(",") for pair in line.attrib["points"].split())]


def test_better_phases_are_higher_and_later_ones_further_right() -> None:
    picture = ElementTree.fromstring(drawn([curve("mira", 0, 2, 5, 3), curve("mira", 1, 4, 7, 5)]))
    chart = picture.findall(f"{SVG}g")[0]
    lines = {line.attrib["class"]: points(line) for line in chart.findall(f"{SVG}polyline")}
    assert set(lines) == {"seed c0", "arm c0"}
    (x0, y0), (x1, y1), (x2, y2) = lines["arm c0"]
    assert x0 < x1 < x2 and x1 - x0 == pytest.approx(x2 - x1, abs=0.2)
    assert y1 < y2 < y0
    labels = [circle.findtext(f"{SVG}title") for circle in chart.findall(f"{SVG}circle")]
    assert labels == ["mira, phase 0: 30.0%", "mira, phase 1: 60.0%", "mira, phase 2: 40.0%"]


def test_every_line_is_within_its_frame() -> None:
    picture = ElementTree.fromstring(drawn([curve("a", 0, 0, 10), curve("b", 0, 3, 3)]))
    for chart in picture.findall(f"{SVG}g")[: len(CHARTS)]:
        grid = [float(line.attrib["y1"]) for line in chart.findall(f"{SVG}line")]
        for line in chart.findall(f"{SVG}polyline"):
            assert all(min(grid) - 0.1 <= y <= max(grid) + 0.1 for _, y in points(line))


def test_arms_beyond_the_colours_can_be_distinguished() -> None:
    names = [f"arm{number}" for number in range(COLOURS + 1)]
    text = str(drawn([curve(name, 0, 4, 5) for name in names]))
    classes = re.findall(r'<line x1="0" y1="0" x2="26" y2="0" class="([^"]*)"', text)
    assert len(set(classes)) == len(names) == len(classes)
    assert all(f"{name} (1 seed)" in text for name in names)


def test_a_chart_without_data_has_a_message() -> None:
    assert "no data in any phase" in drawn([curve("mira", 0, 4)]), "only the start was evaluated"


def test_names_are_escaped(tmp_path: Path) -> None:
    write_curves([curve("<script>", 0, 4, 5)], tmp_path / "c.svg")
    ElementTree.parse(tmp_path / "c.svg")
    assert "<script>" not in (tmp_path / "c.svg").read_text()


@pytest.mark.parametrize(("name", "says"), [("c.png", "must end in .svg"), ("nowhere/c.svg", "there is no folder")])
def test_an_unwritable_target_is_refused(tmp_path: Path, name: str, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        write_curves([curve("mira", 0, 4)], tmp_path / name)


def test_curves_can_be_drawn_by_update() -> None:
    text = str(drawn([Curve("ssl", 0, {"solved": {0: 0.2, 40: 0.5}})], "update"))
    assert ">update<" in text and "ssl, update 40: 50.0%" in text
