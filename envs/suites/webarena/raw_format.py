"""Parses the JSON of WebArena and WebArena-Lite.

An unknown field is an error: an evaluator that ignores a part of a task would differ from the benchmark.
"""

from __future__ import annotations

import re
from typing import Any, Literal

from pydantic import Field, model_validator

from envs.core.record import Record
from envs.suites.webarena.task import (
    OR,
    Address,
    Call,
    Check,
    FunctionName,
    LastPage,
    PageCheck,
    ProgramHtml,
    Script,
    Site,
    StringMatch,
    Task,
    Texts,
    UrlMatch,
    WholePage,
)

AND = " |AND| "
NOT_ACHIEVABLE = "N/A"
SCRIPT_STARTS = ("document.", "[...document.")

_CALL = re.compile(r"func:(?P<name>\w+)\((?P<arguments>.*)\)")
_ARGUMENT = re.compile(r"\s*(?:'([^'\\]*)'|\"([^\"\\]*)\"|(__page__))\s*")
_ARITY: dict[FunctionName, tuple[str, ...]] = {
    "reddit_get_post_url": ("text",),
    "shopping_get_latest_order_url": (),
    "shopping_get_sku_latest_review_author": ("text",),
    "shopping_get_sku_latest_review_rating": ("text",),
    "gitlab_get_project_memeber_role": ("page", "text"),
}
_NAMES: dict[str, FunctionName] = {name: name for name in _ARITY}
_GIVES_URL = ("reddit_get_post_url", "shopping_get_latest_order_url")


class ReferenceAnswers(Record):
    exact_match: str | None = None
    must_include: tuple[str, ...] | str = ()
    fuzzy_match: tuple[str, ...] | str = ()

    def texts(self) -> Texts:
        return Texts(
            exact=self.exact_match,
            includes=_includes(self.must_include),
            unlisted=isinstance(self.must_include, str),
            fuzzy=_all(self.fuzzy_match),
        )


class RequiredContents(ReferenceAnswers):
    @model_validator(mode="after")
    def _asks_something(self) -> RequiredContents:
        if self.texts() == Texts():
            raise ValueError("no content is required")
        return self


class Target(Record):
    """One entry of `program_html`."""

    url: str
    locator: str
    required_contents: RequiredContents
    prep_actions: tuple[str, ...] = ()

    def page_check(self) -> PageCheck:
        return PageCheck(where=self._where(), what=self._what(), texts=self.required_contents.texts())

    @model_validator(mode="after")
    def _can_be_read(self) -> Target:
        self._where()
        self._what()
        return self

    def _where(self) -> LastPage | Address | Call:
        if self.url == "last":
            return LastPage()
        if self.url.startswith("func:"):
            call = parse_call(self.url)
            if call.name not in _GIVES_URL:
                raise ValueError(f"{call.name} gives no address")
            return call
        return Address(url=self.url)

    def _what(self) -> WholePage | Script | Call:
        locator = self.locator.strip()
        if not locator:
            return WholePage()
        if locator.startswith("func:"):
            call = parse_call(locator)
            if call.name in _GIVES_URL:
                raise ValueError(f"{call.name} gives an address, not content")
            return call
        if locator.startswith(SCRIPT_STARTS):
            return Script(expression=locator, prepare=self.prep_actions)
        raise ValueError(f"locator {locator[:60]!r} is neither empty, a func: nor an expression on the document")


class Evaluation(Record):
    eval_types: tuple[Literal["string_match", "url_match", "program_html"], ...] = Field(min_length=1)
    reference_answers: ReferenceAnswers | None
    reference_url: str | None
    program_html: tuple[Target, ...]
    url_note: Literal["GOLD in PRED"] | None = None
    string_note: str = ""
    reference_answer_raw_annotation: str = ""
    annotation_note: str = ""

    @model_validator(mode="after")
    def _has_what_it_names(self) -> Evaluation:
        needed = {
            "string_match": self.reference_answers is not None and self.reference_answers != ReferenceAnswers(),
            "url_match": bool(self.reference_url),
            "program_html": bool(self.program_html),
        }
        for kind in self.eval_types:
            if not needed[kind]:
                raise ValueError(f"{kind} is listed, but its reference is missing")
        return self

    def checks(self, note: str) -> tuple[Check, ...]:
        return tuple(self._check(kind, note) for kind in self.eval_types)

    def _check(self, kind: Literal["string_match", "url_match", "program_html"], note: str) -> Check:
        match kind:
            case "string_match":
                answers = self.reference_answers or ReferenceAnswers()
                if answers.fuzzy_match == NOT_ACHIEVABLE:
                    rest = answers.model_copy(update={"fuzzy_match": ()})
                    return StringMatch(texts=rest.texts(), impossible=self.string_note or note)
                return StringMatch(texts=answers.texts())
            case "url_match":
                return UrlMatch(urls=tuple((self.reference_url or "").split(OR)))
            case "program_html":
                return ProgramHtml(pages=tuple(target.page_check() for target in self.program_html))


class RawTask(Record):
    sites: tuple[Site, ...]
    task_id: int
    old_task_id: int | None = None
    require_login: bool
    storage_state: str | None
    start_url: str
    geolocation: dict[str, float] | None
    intent_template: str
    instantiation_dict: dict[str, Any]
    intent: str
    require_reset: bool
    eval: Evaluation
    intent_template_id: int
    string_note: str = ""

    def task(self) -> Task:
        return Task(
            id=self.task_id,
            sites=self.sites,
            start_urls=tuple(self.start_url.split(AND)),
            intent=self.intent,
            template_id=self.intent_template_id,
            checks=self.eval.checks(self.string_note),
            original_id=self.old_task_id,
        )


def parse_call(text: str) -> Call:
    """Parses `func:name('argument')`; nothing is evaluated. Raises ValueError for any other name or form."""
    match = _CALL.fullmatch(text.strip())
    name = _NAMES.get(match["name"]) if match else None
    if match is None or name is None:
        raise ValueError(f"{text[:80]!r} is none of the known helpers: {', '.join(_ARITY)}")
    parts = match["arguments"].split(",") if match["arguments"].strip() else []
    arguments = [_ARGUMENT.fullmatch(part) for part in parts]
    kinds = tuple("page" if argument and argument[3] else "text" for argument in arguments)
    if not all(arguments) or kinds != _ARITY[name]:
        raise ValueError(f"{text[:80]!r}: {name} takes ({', '.join(_ARITY[name])})")
    return Call(name=name, argument="".join((text[1] or text[2] or "") for text in arguments if text))


def _all(value: tuple[str, ...] | str) -> tuple[str, ...]:
    """Converts the plain text that WebArena-Lite has once in place of a list."""
    return (value,) if isinstance(value, str) else value


def _includes(value: tuple[str, ...] | str) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(text.split(OR)) for text in _all(value))
