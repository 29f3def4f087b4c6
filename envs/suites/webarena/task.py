"""Records of a WebArena task, common to all three file formats."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from envs.core.record import Record

Site = Literal["shopping", "shopping_admin", "reddit", "gitlab", "map", "wikipedia", "homepage"]

Json = Any
"""A JSON value. Task files contain such values, and answers are compared with them."""

OR = " |OR| "
"""Separates alternatives in the files of WebArena."""

Alternatives = tuple[str, ...]
"""Texts of which any one is accepted."""


class Texts(Record):
    """Requirements for the text of an answer or of a part of a page. All that are set must be met."""

    exact: str | None = None
    includes: tuple[Alternatives, ...] = ()
    unlisted: bool = False
    """True: `must_include` is a plain text instead of a list, for which the benchmark's own evaluator fails."""
    fuzzy: tuple[str, ...] = ()
    """Statements that a judge must find in the text, in any wording."""


class StringMatch(Record):
    """A check of the answer."""

    kind: Literal["string_match"] = "string_match"
    texts: Texts = Texts()
    impossible: str | None = None
    """The authors' reason why the task is impossible (may be empty); the answer must say so. None: it is possible."""


class UrlMatch(Record):
    """A check of the address at which the agent stopped."""

    kind: Literal["url_match"] = "url_match"
    urls: Alternatives


FunctionName = Literal[
    "reddit_get_post_url",
    "shopping_get_latest_order_url",
    "shopping_get_sku_latest_review_author",
    "shopping_get_sku_latest_review_rating",
    "gitlab_get_project_memeber_role",
]
"""The helpers in task files, in their spelling."""


class Call(Record):
    """A call of a helper with its argument; the helper implies `page` and `last` arguments."""

    kind: Literal["call"] = "call"
    name: FunctionName
    argument: str = ""


class LastPage(Record):
    """The page at which the agent stopped, without reloading it."""

    kind: Literal["last"] = "last"


class Address(Record):
    """A page that the check opens with the session's cookies."""

    kind: Literal["address"] = "address"
    url: str


class WholePage(Record):
    kind: Literal["whole"] = "whole"


class Script(Record):
    """A JavaScript expression that selects a text of the page, and expressions that run before."""

    kind: Literal["script"] = "script"
    expression: str
    prepare: tuple[str, ...] = ()


class PageCheck(Record):
    """A check of the text of one page."""

    where: Annotated[LastPage | Address | Call, Field(discriminator="kind")]
    what: Annotated[WholePage | Script | Call, Field(discriminator="kind")]
    texts: Texts


class ProgramHtml(Record):
    """A check of pages after the episode."""

    kind: Literal["program_html"] = "program_html"
    pages: tuple[PageCheck, ...] = Field(min_length=1)


Format = Literal[
    "currency",
    "duration",
    "date",
    "location-name",
    "markdown",
    "distance",
    "string_list",
    "month",
    "coordinates",
    "url",
    "json",
]


class Shape(Record):
    """The schema by which a JSON value is read before it is compared."""

    type: Literal["null", "array", "object", "string", "number", "integer", "boolean"] | None = None
    format: Format | None = None
    title: str | None = None
    items: Shape | None = None
    properties: dict[str, Shape] = Field(default_factory=dict)


class AgentResponse(Record):
    """A check of the answer as a JSON object: kind of task, status, and retrieved data."""

    kind: Literal["agent_response"] = "agent_response"
    task_type: Literal["retrieve", "mutate", "navigate"]
    status: str
    data: tuple[Json, ...] | None
    """Expected items; a list in place of a plain value contains alternatives."""
    shape: Shape
    ordered: bool = False
    unset_data: bool = False
    """True: the reference has no data field, so the benchmark's own evaluator accepts no answer."""


class RequestSent(Record):
    """A check of a request that the session must have made (or must not have made)."""

    kind: Literal["request_sent"] = "request_sent"
    urls: Alternatives
    """Addresses, or patterns if they begin with `^`."""
    method: str | None = None
    """None: any."""
    status: int = 200
    """-1: the request got no answer."""
    query: dict[str, Alternatives] = Field(default_factory=dict[str, Alternatives])
    headers: dict[str, Json] = Field(default_factory=dict[str, Json])
    post_data: dict[str, Json] = Field(default_factory=dict[str, Json])
    content: dict[str, Json] = Field(default_factory=dict[str, Json])
    """Values in the response's JSON."""
    cookies: dict[str, Json] = Field(default_factory=dict[str, Json])
    """Cookies set by the response."""
    post_shape: Shape = Shape()
    query_shape: Shape = Shape()
    ignored_query: tuple[str, ...] = ()
    """Patterns of query parameters that are not compared."""
    base64_query: bool = False
    last_only: bool = True
    """Only the last request to this address counts; False: any."""
    navigates: bool = False
    """The task is to open a page."""
    last_page: bool = False
    """True: it must be the last page that was opened."""
    forbidden: bool = False


Check = Annotated[
    StringMatch | UrlMatch | ProgramHtml | AgentResponse | RequestSent,
    Field(discriminator="kind"),
]


class Task(Record):
    """One task. It succeeds if every check is met."""

    id: int
    sites: tuple[Site, ...] = Field(min_length=1)
    start_urls: tuple[str, ...] = Field(min_length=1)
    """Addresses with placeholders such as `__SHOPPING__`, one per tab."""
    intent: str
    template_id: int
    checks: tuple[Check, ...] = Field(min_length=1)
    original_id: int | None = None
    """Its id among WebArena's 812, for a task of WebArena-Lite."""

    @property
    def name(self) -> str:
        return str(self.id)
