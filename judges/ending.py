"""What the outcome judge is shown of an episode: its milestones with their quotes, and the pages where they were met.

The last page alone proves little: an order that was sent, a list that was read to its end, or a filter that was set are
seen on earlier pages (MiRA paper, §3: the judge evaluates "the full interaction context").
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from envs.core.blobs import BlobStore
from envs.core.errors import TraceError
from envs.core.observation import Observation
from envs.core.trace import Commit, Flip, Intent, Rating
from envs.observer.action_log import action_log_lines
from envs.observer.page_focus import focused_lines, interest
from envs.observer.page_lines import without_refs, without_repeated_areas
from envs.observer.page_state import page_state
from judges.base import Ending, Proof, SeenPage
from judges.evidence import normalised
from judges.outcome import LOG_CHARS
from judges.quoted_lines import holds, quoted_lines
from judges.relevance import terms
from judges.repeated_lines import without_repeats
from models.prompting.invisible_characters import visible

EARLIER_PAGES: Final = 8
"""Most pages shown beside the last one; the others are counted."""
EARLIER_CHARS: Final = 6_000
"""Length of all of them together, without the lines that another shown page has too. A longer page is cut to its lines
that match the task, its milestones and the answer; lines that are left out are counted."""
OTHER_CHARS: Final = 2_000
"""Length of all pages on which no milestone was met, where others were met and the agent gave no answer: the log, the
proofs and the last page show what was done. An answer may be supported by any page."""

Steps = Sequence[tuple[Intent, Commit | None]]


@dataclass(frozen=True, slots=True)
class EndedEpisode:
    """What is recorded of an episode when it has ended."""

    ending: Ending
    """With the status of the last rating, without proofs and earlier pages."""
    steps: Steps
    rating: Rating
    """The last rating, after the last step."""
    blobs: BlobStore
    """Texts of the pages, secrets masked."""


class _Met(NamedTuple):
    """The rating that found a milestone achieved."""

    place: int
    """Index of the step before which it was rated; the number of steps for the last rating."""
    flip: Flip


@dataclass(frozen=True, slots=True)
class _Candidate:
    place: int
    page: SeenPage
    met: tuple[int, ...] = ()


def complete_ending(record: EndedEpisode) -> Ending:
    """The ending with its proofs and at most `EARLIER_PAGES` earlier pages, `EARLIER_CHARS` characters in all.

    Pages on which milestones were met come first, then those that share most words with answer and task.
    """
    met = _met(record)
    milestones = record.ending.milestones
    proofs = tuple(_proof(record.ending, index, met.get(m.id)) for index, m in enumerate(milestones))
    candidates = _candidates(record, met)
    chosen = sorted(candidates, key=_rank(record.ending), reverse=True)[:EARLIER_PAGES]
    pages = _excerpts(sorted(chosen, key=lambda one: one.place), record)
    return replace(record.ending, proofs=proofs, pages=pages, pages_left_out=len(candidates) - len(chosen))


def quotes_of(flip: Flip) -> tuple[str, ...]:
    return (flip.evidence, *flip.further)


def _met(record: EndedEpisode) -> dict[str, _Met]:
    """By milestone id, the first rating that found it achieved."""
    first_met: dict[str, _Met] = {}
    ratings = [intent.rating for intent, _ in record.steps]
    for place, rating in enumerate([*ratings, record.rating]):
        for flip in rating.flips:
            if flip.achieved:
                first_met.setdefault(flip.milestone, _Met(place, flip))
    return first_met


def _proof(ending: Ending, index: int, met: _Met | None) -> Proof:
    return Proof(quotes_of(met.flip), met.place) if met is not None and ending.is_achieved(index) else Proof()


def _candidates(record: EndedEpisode, met: dict[str, _Met]) -> list[_Candidate]:
    """Every page other than the last, once, and every output of `find` and `expand`, oldest first."""
    last = record.ending.observation
    pages = [_seen(record.blobs, intent) for intent, _ in record.steps]
    logged = _in_log(record.ending)
    where = {name: _met_on(one, [*pages, _page_of(last)], logged) for name, one in met.items()}
    by_state: dict[str, _Candidate] = {}
    outputs: dict[str, _Candidate] = {}
    for place, ((intent, commit), page) in enumerate(zip(record.steps, pages, strict=True)):
        if page is None:
            continue
        here = tuple(index for index, one in enumerate(record.ending.milestones) if where.get(one.id) == place)
        state = intent.seen.state or intent.seen.digest
        known = by_state.get(state)
        by_state[state] = _Candidate(place, page, here) if known is None else replace(known, met=(*known.met, *here))
        if commit is not None and commit.result.output:
            output = replace(page, text=commit.result.output, output=True)
            outputs.setdefault(commit.result.output, _Candidate(place, output))
    by_state.pop(page_state(last.url, last.text), None)
    return [*by_state.values(), *outputs.values()]


def _in_log(ending: Ending) -> Callable[[str], bool]:
    """Whether a quote is of the log, which the judge is shown anyway."""
    lines = [normalised(visible(line)) for line in action_log_lines(ending.history, LOG_CHARS)]
    return lambda quote: any(quote in line for line in lines)


def _met_on(met: _Met, pages: Sequence[SeenPage | None], logged: Callable[[str], bool]) -> int | None:
    """Index of the page on which a milestone was met: that of its rating. A rating that ran beside the policy is
    recorded a step later: then the page before holds its quotes. None where the log alone proves it."""
    quotes = [normalised(visible(quote)) for quote in quotes_of(met.flip)]
    for place in (met.place, met.place - 1):
        page = pages[place] if place >= 0 else None
        if page is not None and holds(page.text, quotes):
            return place
    unlogged = [quote for quote in quotes if not logged(quote)]
    if not unlogged:
        return None
    page = pages[met.place - 1] if met.place else None
    return (
        met.place - 1 if len(unlogged) < len(quotes) and page is not None and holds(page.text, unlogged) else met.place
    )


def _seen(blobs: BlobStore, intent: Intent) -> SeenPage | None:
    """The page that a step was chosen on; None if its text cannot be read."""
    try:
        return SeenPage(intent.step, intent.seen.url, intent.seen.title, blobs.text(intent.seen.text_blob))
    except TraceError:
        return None


def _page_of(observation: Observation) -> SeenPage:
    return SeenPage(0, observation.url, observation.title, observation.text)


def _rank(ending: Ending) -> Callable[[_Candidate], tuple[int, int, int, int]]:
    """Sort key of candidates: pages where milestones were met, then words of the answer, of the task, then later."""
    answer, task = terms([ending.answer or "", *(note.text for note in ending.notes)]), terms([ending.instruction])

    def key(one: _Candidate) -> tuple[int, int, int, int]:
        page_terms = terms([one.page.title, one.page.text])
        return len(one.met), len(answer & page_terms), len(task & page_terms), one.place

    return key


def _excerpts(chosen: Sequence[_Candidate], record: EndedEpisode) -> tuple[SeenPage, ...]:
    met = _met(record)
    quotes = [_quotes(one, met, record) for one in chosen]
    named = [(_name(one.page), _read(visible(one.page.text), own)) for one, own in zip(chosen, quotes, strict=True)]
    kept = [quoted_lines(text, own) for (_, text), own in zip(named, quotes, strict=True)]
    texts = without_repeats(named, without_repeated_areas(visible(record.ending.observation.text)), kept)
    proof_only = record.ending.answer is None and bool(met)
    rooms = _shares(chosen, [len(text) for text in texts], proof_only=proof_only)
    return tuple(_excerpt(one, text, room, record) for one, text, room in zip(chosen, texts, rooms, strict=True))


def _read(text: str, quotes: Sequence[str]) -> str:
    """*text* with each row's words once, unless *quotes* are of the lines that this removes."""
    short = without_repeated_areas(text)
    return text if holds(text, quotes) and not holds(short, quotes) else short


def _name(page: SeenPage) -> str:
    return f"{'what was shown' if page.output else 'the page'} at step {page.step}"


def _shares(chosen: Sequence[_Candidate], lengths: Sequence[int], *, proof_only: bool) -> list[int]:
    """The room of each page. *proof_only*: those that are no proof have `OTHER_CHARS` characters in all."""
    if not proof_only:
        return _rooms(lengths, EARLIER_CHARS)
    others = [place for place, one in enumerate(chosen) if not one.met]
    of_others = dict(zip(others, _rooms([lengths[place] for place in others], OTHER_CHARS), strict=True))
    proofs = [place for place, one in enumerate(chosen) if one.met]
    left = EARLIER_CHARS - sum(of_others.values())
    of_proofs = dict(zip(proofs, _rooms([lengths[place] for place in proofs], left), strict=True))
    return [(of_others | of_proofs)[place] for place in range(len(chosen))]


def _rooms(lengths: Sequence[int], room: int) -> list[int]:
    """Shares *room* among texts of *lengths*: what a short text does not need goes to the longer ones."""
    rooms = [0] * len(lengths)
    for left, place in enumerate(sorted(range(len(lengths)), key=lengths.__getitem__)):
        rooms[place] = min(lengths[place], room // (len(lengths) - left))
        room -= rooms[place]
    return rooms


def _excerpt(one: _Candidate, text: str, room: int, record: EndedEpisode) -> SeenPage:
    if len(text) > room:
        whole = quoted_lines(text, _quotes(one, _met(record), record))
        text = "\n".join(focused_lines(text, interest(*_sought(one, record)), room, whole=whole))
    return replace(one.page, text=without_refs(text), met=one.met)


def _sought(one: _Candidate, record: EndedEpisode) -> Iterator[tuple[str, float]]:
    yield record.ending.instruction, 0.5
    yield record.ending.answer or "", 1.0
    met = _met(record)
    for index in one.met:
        milestone = record.ending.milestones[index]
        yield milestone.text, 1.0
        for quote in quotes_of(met[milestone.id].flip):
            yield f'"{quote}"', 3.0


def _quotes(one: _Candidate, met: dict[str, _Met], record: EndedEpisode) -> list[str]:
    """The quotes of the milestones that were met on a page."""
    ids = (record.ending.milestones[index].id for index in one.met)
    return [quote for name in ids for quote in quotes_of(met[name].flip)]
