"""Writes the report of `mira eval planning`: the numbers, and steps with the right and the answered action on each
screenshot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from markupsafe import Markup

from agent.inspection.report.svg import element, line, text
from envs.core.action_languages import language
from envs.core.actions import Action
from envs.core.atomic_write import write_atomically
from judges.statistics import Estimate
from training.data_sets.items import POINT_TOLERANCE
from training.grounding.picturing import dot, rectangle, render_report, shot
from training.grpo.rewards.targets import points_of
from training.loop.evaluation.drawing import percent
from training.step_accuracy.report import ElementMetrics, PlanningScore, ScoredStep, StepMetrics

_TEMPLATE: Final = Path(__file__).with_name("report.html.j2")
TITLES: Final = ("steps", "n", "Type", "GR", "SR (95 %)", "by episode", "TM", "EM", "thought\ntokens")
ELEMENT_TITLES: Final = ("steps", "n", "Ele.Acc", "Op.F1", "Step SR", "SR")
_STRIP: Final = 0.075
"""Height of the two lines over a screenshot, as a share of its width."""
_ACTION_CHARS: Final = 70
"""Characters of an action over a screenshot; the card has all of them."""
_ANSWER_CHARS: Final = 300


class Card(NamedTuple):
    """One step of the report."""

    title: str
    correct: bool
    lines: tuple[str, ...]
    picture: Markup


def write_report(scored: Sequence[ScoredStep], score: PlanningScore, target: Path, shown: int) -> None:
    """Writes the report with the first *shown* steps, wrong ones (by SR) first. Raises BadInput for a damaged
    picture."""
    ranked = sorted(scored, key=lambda each: each.score.success)[:shown]
    page = render_report(
        _TEMPLATE,
        score=score,
        titles=TITLES,
        rows=list(rows_of(score)),
        element_titles=ELEMENT_TITLES,
        element_rows=list(element_rows(score)),
        full_tasks=full_tasks_in_words(score) if score.full_tasks.episodes else "",
        cards=[_card(each) for each in ranked],
        left_out=len(scored) - len(ranked),
    )
    write_atomically(target, page)


def rows_of(score: PlanningScore) -> Iterator[tuple[str, ...]]:
    """The cells of TITLES for all steps and for each group of them."""
    for name, metrics in {"all": score.overall, **score.by_platform, **score.by_group, **score.by_type}.items():
        yield name, str(metrics.steps), *_cells(metrics)


def element_rows(score: PlanningScore) -> Iterator[tuple[str, ...]]:
    """The cells of ELEMENT_TITLES: Mind2Web's metrics, means over episodes."""
    for name, metrics in score.mind2web.items():
        yield name, str(metrics.steps), *map(percent, _means(metrics))


def full_tasks_in_words(score: PlanningScore) -> str:
    """The full task success rate on one line."""
    tasks = score.full_tasks
    shares = f"{percent(tasks.success)} by SR, {percent(tasks.exact_match)} by EM"
    return f"full task success: {shares} of {tasks.episodes} episodes"


def _means(metrics: ElementMetrics) -> tuple[Estimate, ...]:
    return metrics.macro_element, metrics.macro_operation_f1, metrics.macro_success, metrics.task_success


def _cells(metrics: StepMetrics) -> tuple[str, ...]:
    thought = metrics.thought_tokens.value
    return (
        _share(metrics.type.wilson),
        _share(metrics.grounding.wilson),
        percent(metrics.success.wilson),
        percent(metrics.success.by_episode).partition(" ")[2] or "-",
        _share(metrics.type_match.wilson),
        _share(metrics.exact_match.wilson),
        "-" if thought is None else f"{thought:.1f}",
    )


def _share(estimate: Estimate) -> str:
    return "-" if estimate.value is None else f"{estimate.value:.1%}"


def _card(scored: ScoredStep) -> Card:
    example, score, answer = scored.step.example, scored.score, scored.answer
    judged = {"Type": score.type_right, "SR": score.success, "TM": score.type_match, "EM": score.exact_match}
    if scored.element is not None:
        judged |= {"Ele.Acc": scored.element.element, "Step SR": scored.element.success}
    rules = " · ".join(f"{name} {'right' if right else 'wrong'}" for name, right in judged.items())
    tokens = "" if answer.thought_tokens is None else f"{answer.thought_tokens} thought tokens"
    episode = f"episode {scored.step.episode}" if scored.step.has_episode else ""
    lines = (
        f"right: {_written(scored, scored.step.target.action)}",
        f"answered: {_answered(scored)}",
        rules,
        " · ".join(filter(None, (tokens, episode, example.name))),
        answer.answer[:_ANSWER_CHARS],
    )
    subject = "" if example.facts is None else example.facts.subject
    title = subject or example.messages[-1][1].partition("\n")[0]
    return Card(title, score.success, tuple(filter(None, lines)), _picture(scored))


def _written(scored: ScoredStep, action: Action) -> str:
    return language(scored.step.target.language).show(action).strip()


def _answered(scored: ScoredStep) -> str:
    return "no action" if scored.action is None else _written(scored, scored.action)


def _picture(scored: ScoredStep) -> Markup:
    """The screenshot with both actions; nothing for a step without one."""
    example = scored.step.example
    return Markup() if example.image is None else shot(example, lambda _: _marks(scored), above=_STRIP)


def _marks(scored: ScoredStep) -> Iterator[Markup]:
    row = _STRIP * scored.step.size[0] / 2
    yield element("g", *_labels(scored, row), font_size=0.7 * row)
    yield from _places(scored)


def _labels(scored: ScoredStep, row: float) -> Iterator[Markup]:
    """Both actions over the screenshot, in rows of *row* pixels."""
    outcome = "right" if scored.score.success else "wrong"
    right = f"right: {_written(scored, scored.step.target.action)}"
    for above, words, kind in ((1.3, right, "reference"), (0.3, f"answered: {_answered(scored)}", outcome)):
        cut = words if len(words) <= _ACTION_CHARS else f"{words[: _ACTION_CHARS - 1]}…"
        yield text(0.25 * row, -above * row, cut, class_=f"label {kind}")


def _places(scored: ScoredStep) -> Iterator[Markup]:
    """The right element with the tolerance of SR, and the answered places."""
    target, size = scored.step.target, scored.step.size
    for box in dict.fromkeys((*(place.region for place in target.places), *scored.step.elements)):
        yield rectangle(box)
    expected = points_of(target.action)
    for point in expected:
        sides = {"rx": POINT_TOLERANCE * size[0], "ry": POINT_TOLERANCE * size[1]}
        yield element("ellipse", cx=point.x, cy=point.y, **sides, class_="tier")
    answered = () if scored.action is None else points_of(scored.action)
    if not answered and scored.place is not None:
        answered = (scored.place,)
    for points, kind in ((expected, "box"), (answered, "way")):
        if len(points) == 2:  # a drag
            yield line(*points[0], *points[1], class_=kind)
    for point, meant in zip(answered, expected or (box.centre for box in scored.step.elements[:1]), strict=False):
        yield line(*point, *meant, class_="way")
    for point in answered:
        yield dot(point, size, right=scored.score.success)
