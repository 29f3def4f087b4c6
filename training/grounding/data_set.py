"""Makes a data set: renders pages, chooses instructions, writes pictures and examples, and continues where it stopped.

OUT/grounding.json           settings of the data set
OUT/images/PAGE.png          pictures
OUT/pages/PAGE.json          examples and counts of each page
OUT/train.jsonl              examples for `mira train grpo`; so validation.jsonl and test.jsonl
OUT/summary.json             counts
"""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final, get_args

from playwright.async_api import Error as PlaywrightError
from pydantic import Field, ValidationError

from envs.browser.chromium import Chromium
from envs.core.atomic_write import replacing, write_atomically
from envs.core.errors import BadInput, EnvError
from envs.core.record import Record
from models.vision.coordinates import CoordinateSpace, Size
from models.vision.grounding import GroundingPrompt
from models.vision.profiles import profile_named
from training.grounding.choosing import Choice, Chosen, choose
from training.grounding.rendering import LayoutServer, Page, Renderer, Servers, miniwob_server
from training.grounding.shots import Shot
from training.grounding.templates import Template, ViewSize, split_of
from training.grpo.examples import Example, Facts, Split, write_examples
from training.grpo.frames import DECLARED_PROFILE
from training.grpo.rewards import PointTarget
from training.loop.parts import begin_or_continue, check_folder, write_record

SPLITS: Final[tuple[Split, ...]] = get_args(Split)
SETTINGS: Final = "grounding.json"
Count = Mapping[str, int]


class DataSettings(Record):
    """What a folder's examples depend on. A folder keeps its settings; sizes and templates may be added."""

    seed: int = 0
    per_page: int = Field(default=6, ge=1, le=100)
    """Most examples of one picture."""
    coordinates: CoordinateSpace = CoordinateSpace.PIXELS
    think: bool = False
    resolution: bool = False


class PageCounts(Record):
    """What was counted on one page."""

    boxes: int
    """Controls whose box was verified in the picture."""
    unusable: Count
    """Other controls, by reason."""
    ambiguous: Count
    """Instructions that were refused because they name more than one control, by kind."""


class PageResult(Record):
    """One rendered page."""

    counts: PageCounts
    examples: tuple[Example, ...]
    """Paths of images are relative to the data set."""


class DataSummary(Record):
    """Counts of a data set."""

    templates: int
    pages: int
    """Pairs of a page and a size."""
    failed: Count
    """Pages that could not be rendered, by reason. The same command tries them again."""
    boxes: int
    unusable: Count
    ambiguous: Count
    examples: int
    by_split: Count
    by_asks: Count
    by_element: Count
    by_source: Count


def pages_of(templates: Sequence[Template], sizes: Sequence[ViewSize], variants: int) -> list[Page]:
    """All pages: each template in each size, with other content for each variant."""
    return [Page(each, size, variant) for variant in range(variants) for each in templates for size in sizes]


async def make_data_set(
    out: Path,
    pages: Sequence[Page],
    settings: DataSettings,
    *,
    workers: int = 2,
    watch: Callable[[int], None],
    sites: Mapping[str, tuple[str, int]] | None = None,
) -> DataSummary:
    """Renders the *pages* that *out* lacks, and writes its files. *watch* is called with the number of pages done.
    *sites*: addresses of running copies by origin, for pages of sites.

    Raises BadInput if *out* has other settings, or if no page could be rendered."""
    check_folder(out, SETTINGS, "data set")
    begin_or_continue(out / SETTINGS, settings, "a data set")
    missing = [page for page in pages if not _result_file(out, page).is_file()]
    failed: Counter[str] = Counter()
    if missing:
        done = len(pages) - len(missing)
        watch(done)
        rest = _Rest(out, missing, settings, sites or {})
        failed = await rest.render(workers, lambda count: watch(done + count))
    results = {page: result for page in pages if (result := _read(out, page)) is not None}
    if not results:
        raise BadInput(f"no page could be rendered: {next(iter(failed), 'none was asked for')}")
    return _write(out, results, failed)


@dataclass(frozen=True, slots=True)
class _Rest:
    """The pages that a data set lacks."""

    out: Path
    pages: Sequence[Page]
    settings: DataSettings
    sites: Mapping[str, tuple[str, int]]

    async def render(self, workers: int, watch: Callable[[int], None]) -> Counter[str]:
        """Renders the pages and writes their results; returns the failures by reason."""
        queue = list(reversed(self.pages))
        failed: Counter[str] = Counter()
        async with AsyncExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mira-grounding-")))
            servers = self._serve(stack)
            chromium = await stack.enter_async_context(Chromium.launch())

            async def work() -> None:
                async with Renderer(chromium, servers, folder, self.settings.seed) as renderer:
                    while queue:
                        page = queue.pop()
                        try:
                            shot = await renderer.render(page)
                        except (EnvError, PlaywrightError) as error:
                            failed[f"{page.template.source}: {str(error).splitlines()[0]}"[:200]] += 1
                        else:
                            await asyncio.to_thread(_store, self.out, page, shot, self.settings)
                        watch(len(self.pages) - len(queue))

            async with asyncio.TaskGroup() as group:
                for _ in range(min(workers, len(self.pages))):
                    group.create_task(work())
        return failed

    def _serve(self, stack: AsyncExitStack) -> Servers:
        sources = {page.template.source for page in self.pages}
        layouts = stack.enter_context(LayoutServer(self.settings.seed)) if "generated" in sources else None
        miniwob = stack.enter_context(miniwob_server()) if "miniwob" in sources else None
        return Servers(layouts, miniwob, self.sites)


def _store(out: Path, page: Page, shot: Shot, settings: DataSettings) -> None:
    """Writes the picture, then the result: a result without a picture does not exist."""
    choice = choose(shot, settings.per_page, Random(f"choose {settings.seed} {page.id}"))
    if choice.chosen:
        image = out / "images" / f"{page.id}.png"
        image.parent.mkdir(parents=True, exist_ok=True)
        with replacing(image) as part:
            part.write_bytes(shot.picture)
    file = _result_file(out, page)
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(file, _result(page, shot, choice, settings).model_dump_json())


def _result(page: Page, shot: Shot, choice: Choice, settings: DataSettings) -> PageResult:
    counts = PageCounts(
        boxes=len(shot.seen),
        unusable={reason.value: count for reason, count in shot.unusable.items()},
        ambiguous={asks.value: count for asks, count in choice.ambiguous.items()},
    )
    examples = tuple(
        _example(f"{page.id}/{number}", page, shot, chosen, settings) for number, chosen in enumerate(choice.chosen)
    )
    return PageResult(counts=counts, examples=examples)


def _example(name: str, page: Page, shot: Shot, chosen: Chosen, settings: DataSettings) -> Example:
    profile = profile_named(DECLARED_PROFILE[settings.coordinates])
    form = GroundingPrompt(settings.think, settings.resolution, profile=profile)
    question = form.where_is(chosen.instruction.words, profile.sent_size(Size(*shot.size)))
    facts = Facts(
        subject=chosen.instruction.words,
        asks=chosen.instruction.asks.value,
        element="text" if chosen.seen.text else "icon",
        platform="web",
        source=page.template.source,
        template=page.template.id,
        split=split_of(page.template, settings.seed),
        distractors=tuple(each.box for each in chosen.distractors),
    )
    return Example(
        name=name,
        messages=(("user", question.text),),
        target=PointTarget(box=chosen.seen.box, size=shot.size),
        image=Path("images") / f"{page.id}.png",
        facts=facts,
    )


def _result_file(out: Path, page: Page) -> Path:
    return out / "pages" / f"{page.id}.json"


def _read(out: Path, page: Page) -> PageResult | None:
    file = _result_file(out, page)
    if not file.is_file():
        return None
    try:
        return PageResult.model_validate_json(file.read_text("utf-8"))
    except ValidationError:
        raise BadInput(f"{str(file)!r} is not a result of a page: delete it, and start the command again") from None


def _write(out: Path, results: Mapping[Page, PageResult], failed: Counter[str]) -> DataSummary:
    """Writes the files of examples, without those of splits that have none, and the summary."""
    by_split: dict[Split, list[Example]] = {split: [] for split in SPLITS}
    for result in results.values():
        for example in result.examples:
            assert example.facts is not None and example.facts.split is not None and example.image is not None
            by_split[example.facts.split].append(example.model_copy(update={"image": out / example.image}))
    for split, examples in by_split.items():
        if examples:
            write_examples(out / f"{split}.jsonl", examples)
    summary = _summary(results, by_split, failed)
    write_record(out / "summary.json", summary)
    return summary


def _summary(
    results: Mapping[Page, PageResult], by_split: Mapping[Split, Sequence[Example]], failed: Counter[str]
) -> DataSummary:
    facts = [example.facts for result in results.values() for example in result.examples if example.facts is not None]
    return DataSummary(
        templates=len({page.template.id for page in results}),
        pages=len(results),
        failed=failed,
        boxes=sum(result.counts.boxes for result in results.values()),
        unusable=_added(result.counts.unusable for result in results.values()),
        ambiguous=_added(result.counts.ambiguous for result in results.values()),
        examples=len(facts),
        by_split={split: len(examples) for split, examples in by_split.items()},
        by_asks=Counter(each.asks for each in facts),
        by_element=Counter(each.element for each in facts),
        by_source=Counter(each.source for each in facts),
    )


def _added(counts: Iterable[Count]) -> Count:
    total: Counter[str] = Counter()
    for each in counts:
        total.update(each)
    return total
