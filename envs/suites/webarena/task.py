"""What a WebArena task is once it is read: one shape for all three file formats."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from envs.core.record import Record

Site = Literal["shopping", "shopping_admin", "reddit", "gitlab", "map", "wikipedia", "homepage"]

Json = Any
"""A value as JSON has it. Task files hold such values, and answers are compared with them."""

OR = " |OR| "
"""What stands between alternatives in the files of WebArena."""

Alternatives = tuple[str, ...]
"""Any one of these will do."""


class Texts(Record):
    """What a text must be or hold: of an answer or of a part of a page. All that is set must be met."""

    exact: str | None = None
    includes: tuple[Alternatives, ...] = ()
    unlisted: bool = False
    """`must_include` is a plain text where a list is meant: the benchmark's own evaluator fails there."""
    fuzzy: tuple[str, ...] = ()
    """Statements that a judge must find in the text, however worded."""


class StringMatch(Record):
    """The answer."""

    kind: Literal["string_match"] = "string_match"
    texts: Texts = Texts()
    impossible: str | None = None
    """Why the task cannot be done, in the words of its authors (may be empty): the answer must say so. None: it can."""


class UrlMatch(Record):
    """The page that the agent stopped at."""

    kind: Literal["url_match"] = "url_match"
    urls: Alternatives


FunctionName = Literal[
    "reddit_get_post_url",
    "shopping_get_latest_order_url",
    "shopping_get_sku_latest_review_author",
    "shopping_get_sku_latest_review_rating",
    "gitlab_get_project_memeber_role",
]
"""The helpers that task files name, spelled as they spell them."""


class Call(Record):
    """A helper with its one argument; `page` and `last` arguments are implied by the helper itself."""

    kind: Literal["call"] = "call"
    name: FunctionName
    argument: str = ""


class LastPage(Record):
    """The page that the agent stopped at, as it is, not loaded again."""

    kind: Literal["last"] = "last"


class Address(Record):
    """A page that is opened for the check, with the session's cookies."""

    kind: Literal["address"] = "address"
    url: str


class WholePage(Record):
    kind: Literal["whole"] = "whole"


class Script(Record):
    """A JavaScript expression that picks a text from the page, and what is to be clicked open before."""

    kind: Literal["script"] = "script"
    expression: str
    prepare: tuple[str, ...] = ()


class PageCheck(Record):
    """One look at one page."""

    where: Annotated[LastPage | Address | Call, Field(discriminator="kind")]
    what: Annotated[WholePage | Script | Call, Field(discriminator="kind")]
    texts: Texts


class ProgramHtml(Record):
    """What pages show afterwards."""

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
    """How a JSON value is to be read before it is compared."""

    type: Literal["null", "array", "object", "string", "number", "integer", "boolean"] | None = None
    format: Format | None = None
    title: str | None = None
    items: Shape | None = None
    properties: dict[str, Shape] = Field(default_factory=dict)


class AgentResponse(Record):
    """The answer as one JSON object: what was done, how it ended, and the data that were asked for."""

    kind: Literal["agent_response"] = "agent_response"
    task_type: Literal["retrieve", "mutate", "navigate"]
    status: str
    data: tuple[Json, ...] | None
    """Items expected; a list in the place of a plain value holds alternatives."""
    shape: Shape
    ordered: bool = False
    unset_data: bool = False
    """The reference does not name the data at all: no answer is right for the benchmark's own evaluator."""


class RequestSent(Record):
    """A request that the session must have made (or must not have made)."""

    kind: Literal["request_sent"] = "request_sent"
    urls: Alternatives
    """Addresses, or patterns where they begin with `^`."""
    method: str | None = None
    """None: any."""
    status: int = 200
    """-1: the request got no answer."""
    query: dict[str, Alternatives] = Field(default_factory=dict[str, Alternatives])
    headers: dict[str, Json] = Field(default_factory=dict[str, Json])
    post_data: dict[str, Json] = Field(default_factory=dict[str, Json])
    content: dict[str, Json] = Field(default_factory=dict[str, Json])
    """Of the JSON that came back."""
    cookies: dict[str, Json] = Field(default_factory=dict[str, Json])
    """Set by the answer."""
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
    """It must be the last page that was opened at all."""
    forbidden: bool = False


Check = Annotated[
    StringMatch | UrlMatch | ProgramHtml | AgentResponse | RequestSent,
    Field(discriminator="kind"),
]


class Task(Record):
    """One task. It is done if every check is met."""

    id: int
    sites: tuple[Site, ...] = Field(min_length=1)
    start_urls: tuple[str, ...] = Field(min_length=1)
    """With placeholders such as `__SHOPPING__`; one tab each."""
    intent: str
    template_id: int
    checks: tuple[Check, ...] = Field(min_length=1)
    original_id: int | None = None
    """Its id among the 812 where it is one of WebArena-Lite's."""

    @property
    def name(self) -> str:
        return str(self.id)
