"""Compact prompts on long pages: how often they show the control that the demonstration acts on, and their tokens.

    mira run --suite sites --split validation --seeds 0-1 --policy oracle --planner reference --out demonstrations
    python -m benchmarks.page_focus demonstrations [--misses 20] [--json]

Takes every step of the recorded episodes, renders the compact prompt again from the trace, and compares two ways to cut
the page: the first 1,600 characters, and the lines chosen by `envs.observer.page_focus`, the latter also without a
milestone to look for (planner `none`). Tokens are the embedded model's. "long" are the pages of more than 1,600
characters.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from agent.episode.prompts import COMPACT_PAGE_CHARS, PolicyView, compact_text
from envs.core.actions import Select, Stop, Type
from envs.core.trace_store import BlobStore, Trace, read_trace
from training.data.trace_views import policy_views

WAYS = ("first", "focus", "focus without plan")


@dataclass(frozen=True, slots=True)
class DemonstratedStep:
    """A step with what the policy was shown."""

    task: str
    number: int
    view: PolicyView
    ref: int | None
    """The control that the action names."""
    entered: str
    """What the action types, chooses or answers; empty for other actions."""
    action: str


@dataclass(frozen=True, slots=True)
class Figures:
    """Over all steps of one set."""

    steps: int
    targets: int
    """Steps whose action names a control that the page text shows."""
    target_shown: float
    """Share of them in which the prompt shows it."""
    entered: int
    """Steps that type, choose or answer something that stands in the goal or on the whole page."""
    entered_shown: float
    """Share of them in which it stands in the prompt."""
    tokens_p50: int
    tokens_p90: int
    tokens_p99: int
    milliseconds: float
    """Mean time to render one prompt."""


def demonstrated(folders: Sequence[Path]) -> Iterator[DemonstratedStep]:
    """Steps of the successful episodes below *folders*."""
    for folder in folders:
        for path in sorted(folder.rglob("episodes/*.jsonl")):
            trace = read_trace(path)
            if trace.footer is not None and trace.footer.outcome == "success":
                yield from _steps(trace, BlobStore(path.parent.parent / "blobs"))


def _steps(trace: Trace, blobs: BlobStore) -> Iterator[DemonstratedStep]:
    for intent, view in policy_views(trace, blobs):
        action = intent.action
        entered = action.text if isinstance(action, Type) else action.option if isinstance(action, Select) else ""
        entered = (action.answer or "") if isinstance(action, Stop) else entered
        yield DemonstratedStep(
            trace.header.task.name, intent.step, view, getattr(action, "ref", None), entered, intent.raw
        )


def prompt(step: DemonstratedStep, way: str) -> str:
    if way == "focus":
        return compact_text(step.view)
    if way == "focus without plan":
        return compact_text(replace(step.view, next_milestone=None))
    text = step.view.observation.text
    cut = text if len(text) <= COMPACT_PAGE_CHARS else text[: text.rfind("\n", 0, COMPACT_PAGE_CHARS)]
    return compact_text(replace(step.view, observation=replace(step.view.observation, text=cut)))


def shows_target(step: DemonstratedStep, text: str) -> bool:
    return f"[{step.ref}] " in text


def shows_entered(step: DemonstratedStep, text: str) -> bool:
    return step.entered.casefold() in text.casefold()


def measure(steps: Sequence[DemonstratedStep], way: str, tokenizer: Any) -> Figures:
    begun = time.perf_counter()
    prompts = [prompt(step, way) for step in steps]
    seconds = time.perf_counter() - begun
    pairs = list(zip(steps, prompts, strict=True))
    targets = [shows_target(s, p) for s, p in pairs if s.ref and shows_target(s, s.view.observation.text)]
    hits = [shows_entered(s, p) for s, p in pairs if s.entered and shows_entered(s, _everything(s))]
    tokens = sorted(len(tokenizer.encode(text, add_special_tokens=False)) for text in prompts)
    return Figures(
        steps=len(steps),
        targets=len(targets),
        target_shown=round(statistics.fmean(targets), 4) if targets else 1.0,
        entered=len(hits),
        entered_shown=round(statistics.fmean(hits), 4) if hits else 1.0,
        tokens_p50=_quantile(tokens, 0.5),
        tokens_p90=_quantile(tokens, 0.9),
        tokens_p99=_quantile(tokens, 0.99),
        milliseconds=round(1000 * seconds / len(steps), 2),
    )


def _everything(step: DemonstratedStep) -> str:
    return f"{step.view.instruction}\n{step.view.observation.text}"


def _quantile(values: Sequence[int], share: float) -> int:
    return values[round(share * (len(values) - 1))]


def misses(steps: Sequence[DemonstratedStep]) -> Iterator[tuple[str, DemonstratedStep]]:
    """Steps whose prompt lacks what the demonstration needed, and what that is."""
    for step in steps:
        text = prompt(step, "focus")
        if step.ref and shows_target(step, step.view.observation.text) and not shows_target(step, text):
            yield "target", step
        if step.entered and shows_entered(step, _everything(step)) and not shows_entered(step, text):
            yield "entered", step


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, nargs="+", help="folders of runs")
    parser.add_argument("--misses", type=int, default=0, help="list this many steps that lack something")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(Path("models/embedded"), local_files_only=True)
    steps = list(demonstrated(args.runs))
    if not steps:
        raise SystemExit(f"no successful episode below {', '.join(map(str, args.runs))}; record some first")
    long = [step for step in steps if len(step.view.observation.text) > COMPACT_PAGE_CHARS]
    rows = {
        f"{name}/{way}": measure(part, way, tokenizer)
        for name, part in (("all", steps), ("long", long))
        if part
        for way in WAYS
    }
    if args.json:
        print(json.dumps({name: asdict(figures) for name, figures in rows.items()}, indent=2))
    else:
        for name, figures in rows.items():
            print(f"{name:24}", "  ".join(f"{key} {value}" for key, value in asdict(figures).items()))
    lacking = list(misses(long))
    if args.misses:
        print(Counter(f"{kind} {step.task}" for kind, step in lacking).most_common())
    for kind, step in lacking[: args.misses]:
        print(f"{kind:6} {step.task} step {step.number} on {step.view.observation.url}: {step.action}")


if __name__ == "__main__":
    main()
