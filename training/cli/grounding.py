"""`mira data grounding`: makes examples of GUI grounding from rendered pages."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli.output import EXIT_OK, counting, print_json, print_table, stdout
from agent.cli.tables import Column, FittedTable
from training.cli.messages import AsJson, log, reporting_full_disk

if TYPE_CHECKING:
    from training.grounding.data_set import DataSettings, DataSummary
    from training.grounding.templates import Template, ViewSize


def grounding(
    out: Annotated[Path, typer.Argument(help="Folder of the data set; an interrupted command continues.")],
    sources: Annotated[
        str, typer.Option(help="Pages, comma-separated: generated, miniwob (MiniWoB++), sites (the suite's sites).")
    ] = "generated,miniwob",
    templates: Annotated[int, typer.Option(min=1, max=99_999, help="Number of generated page templates.")] = 100,
    sizes: Annotated[
        str, typer.Option(help="Views as WIDTHxHEIGHT@SCALE in CSS pixels and device pixels per CSS pixel.")
    ] = "1280x800,1920x1080,1024x768@1.5,390x844@2",
    variants: Annotated[
        int, typer.Option(min=1, max=10_000, help="Pages with different content for each template and size.")
    ] = 1,
    per_page: Annotated[int, typer.Option(min=1, max=100, help="Maximum number of examples of one screenshot.")] = 6,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of pages, instructions and splits.")] = 0,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Number of pages rendered in parallel.")] = 2,
    coordinates: Annotated[
        str, typer.Option(help="Units that prompts ask for: pixels, resized, thousand or unit.")
    ] = "pixels",
    think: Annotated[bool, typer.Option("--think", help="Ask for a thought before the answer.")] = False,
    resolution: Annotated[
        bool, typer.Option("--resolution", help="Include the size of the screenshot in the prompt.")
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Render pages and write examples of grounding: screenshot, instruction, box, split by page template."""
    from training.grounding.data_set import DataSettings
    from training.grounding.templates import generated_templates, miniwob_templates, parse_sizes, parse_sources
    from training.grpo.frames import parse_coordinates

    named = parse_sources(sources)
    views = parse_sizes(sizes)
    settings = DataSettings(
        seed=seed,
        per_page=per_page,
        coordinates=parse_coordinates(coordinates),
        think=think,
        resolution=resolution,
    )
    known = [
        *(generated_templates(templates) if "generated" in named else ()),
        *(miniwob_templates() if "miniwob" in named else ()),
    ]
    job = _Job(out, known, views, variants, settings, workers, sites="sites" in named, quiet=as_json)
    with reporting_full_disk(out):
        summary = asyncio.run(job.run())
    for reason, count in summary.failed.items():
        log(f"{count} pages were not rendered: {reason}")
    if as_json:
        print_json(summary.model_dump(mode="json"))
        return EXIT_OK
    _print(out, summary)
    return EXIT_OK


@dataclass(frozen=True, slots=True)
class _Job:
    """What one command renders."""

    out: Path
    templates: Sequence[Template]
    """Without those of sites, which are known while the sites run."""
    sizes: Sequence[ViewSize]
    variants: int
    settings: DataSettings
    workers: int
    sites: bool
    quiet: bool

    async def run(self) -> DataSummary:
        if not self.sites:
            return await self._make(self.templates, {})
        from training.grounding.site_pages import running_sites

        with tempfile.TemporaryDirectory(prefix="mira-sites-") as folder:
            async with running_sites(Path(folder)) as running:
                return await self._make([*self.templates, *running.templates], running.routes)

    async def _make(self, templates: Sequence[Template], sites: Mapping[str, tuple[str, int]]) -> DataSummary:
        from training.grounding.data_set import make_data_set, pages_of

        pages = pages_of(templates, self.sizes, self.variants)
        with counting("pages", len(pages), quiet=self.quiet) as watch:
            return await make_data_set(self.out, pages, self.settings, workers=self.workers, watch=watch, sites=sites)


def _print(out: Path, summary: DataSummary) -> None:
    table = FittedTable(Column("count"), Column("of", right=True), title=str(out))
    table.row("page templates", str(summary.templates))
    table.row("pages × sizes", str(summary.pages))
    table.row("boxes verified", str(summary.boxes))
    for reason, count in summary.unusable.items():
        table.row(f"controls {reason}", str(count))
    for asks, count in summary.ambiguous.items():
        table.row(f"ambiguous instructions refused, by {asks}", str(count))
    for group in (summary.by_split, summary.by_asks, summary.by_element, summary.by_source):
        for name, count in group.items():
            table.row(f"examples, {name}", str(count))
    print_table(table)
    files = ", ".join(f"{split}.jsonl" for split, count in summary.by_split.items() if count)
    stdout.print(f"{summary.examples} examples in {out}: {files}", highlight=False, markup=False)
