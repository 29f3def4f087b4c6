"""`mira train sft` on files of examples."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from agent.cli.output import EXIT_OK, print_json, stderr, stdout
from envs.core.errors import BadInput
from training.cli.messages import importing, log, reporting_full_disk, stopping_if_diverged, watcher_of


def imitates_examples(paths: Sequence[Path], recipe: str | None) -> bool:
    """Whether *paths* are files of examples. Raises BadInput if only some are, or if runs are given with a recipe."""
    from training.grpo.examples import holds_examples

    given = [holds_examples(path) for path in paths]
    if any(given) and not all(given):
        raise BadInput(f"{str(paths[given.index(False)])!r} is not a file of examples: give runs or examples, not both")
    if recipe is not None and not any(given):
        raise BadInput("--recipe is for files of examples (mira train examples, adagui-data)")
    return any(given)


def sft_on_examples(
    paths: Sequence[Path],
    start: str,
    out: Path,
    recipe: str | None,
    config: Path | None,
    change: Sequence[str] | None,
    *,
    as_json: bool,
) -> int:
    """Fine-tunes *start* on examples and prints the result."""
    from agent.cli.display import RunDisplay
    from training.grpo.examples import read_example_files
    from training.grpo.imitation_settings import ImitationSettings

    settings = ImitationSettings.load(config, change or (), recipe)
    examples = read_example_files(paths)
    with reporting_full_disk(out), RunDisplay(stderr, None if as_json else stderr) as display:
        importing("torch", "TRL")
        from training.grpo.imitation import imitate

        with stopping_if_diverged():
            result = imitate(examples, start, out, settings, log=log, watch=watcher_of(display))
    if as_json:
        print_json(result.model_dump(mode="json"))
        return EXIT_OK
    cut = f"; {result.cut} prompts lost their middle" if result.cut else ""
    lines = [f"{result.examples} examples, {result.thoughts} with a thought, {result.tokens} answer tokens{cut}"]
    if result.first_loss is not None and result.last_loss is not None:
        lines.append(f"loss per token {result.first_loss:.3f} → {result.last_loss:.3f}")
    for line in (*lines, f"model: {result.model}"):
        stdout.print(line, highlight=False, markup=False)
    return EXIT_OK
