"""Parses the JSON of WebArena-Verified."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from envs.core.record import Record
from envs.suites.webarena.task import AgentResponse, Check, Json, RequestSent, Shape, Site, Task


class ExpectedResponse(Record):
    task_type: Literal["retrieve", "mutate", "navigate"]
    status: Literal[
        "SUCCESS",
        "ACTION_NOT_ALLOWED_ERROR",
        "PERMISSION_DENIED_ERROR",
        "NOT_FOUND_ERROR",
        "DATA_VALIDATION_ERROR",
        "UNKNOWN_ERROR",
    ]
    retrieved_data: tuple[Json, ...] | None = None


class ResponseEvaluator(Record):
    evaluator: Literal["AgentResponseEvaluator"]
    results_schema: Shape
    expected: ExpectedResponse
    ordered: bool = False

    def check(self, task_type: str) -> Check:
        expected = self.expected
        return AgentResponse(
            task_type=expected.task_type,
            status=expected.status,
            data=expected.retrieved_data,
            shape=self.results_schema,
            ordered=self.ordered,
            unset_data="retrieved_data" not in expected.model_fields_set,
        )


class ExpectedRequest(Record):
    url: tuple[str, ...] | str
    http_method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"] | None = None
    """Default: GET, or any method if data are expected (task 423)."""
    response_status: int = 200
    query_params: dict[str, tuple[str, ...] | str] = Field(default_factory=dict[str, tuple[str, ...] | str])
    headers: dict[str, Json] = Field(default_factory=dict[str, Json])
    post_data: dict[str, Json] = Field(default_factory=dict[str, Json])
    response_content: dict[str, Json] = Field(default_factory=dict[str, Json])
    response_cookies: dict[str, Json] = Field(default_factory=dict[str, Json])

    @property
    def urls(self) -> tuple[str, ...]:
        return (self.url,) if isinstance(self.url, str) else self.url

    @property
    def method(self) -> str | None:
        return self.http_method or (None if self.post_data else "GET")

    @property
    def is_page(self) -> bool:
        """True for a page of a site; False for a request of the map's page (`^.*/route/v1/…`)."""
        return all(url.removeprefix("^").startswith("__") for url in self.urls)

    @property
    def query(self) -> dict[str, tuple[str, ...]]:
        return {name: (value,) if isinstance(value, str) else value for name, value in self.query_params.items()}


class NetworkEvaluator(Record):
    evaluator: Literal["NetworkEventEvaluator"]
    expected: ExpectedRequest
    last_event_only: bool = True
    should_not_exist: bool = False
    ignored_query_params: tuple[str, ...] = ()
    ignored_query_params_patterns: tuple[str, ...] = ()
    ignored_post_data_params_patterns: tuple[str, ...] = ()
    """Not used: only expected parameters are compared."""
    decode_base64_query: bool = False
    query_params_schema: Shape = Shape()
    post_data_schema: Shape = Shape()

    @model_validator(mode="after")
    def _patterns_compile(self) -> NetworkEvaluator:
        for pattern in (*self.ignored_query_params_patterns, *(u for u in self.expected.urls if u.startswith("^"))):
            try:
                re.compile(pattern)
            except re.error as error:
                raise ValueError(f"{pattern!r} is not a regular expression: {error}") from error
        return self

    def check(self, task_type: str) -> Check:
        expected = self.expected
        return RequestSent(
            urls=expected.urls,
            method=expected.method,
            status=expected.response_status,
            query=expected.query,
            headers=expected.headers,
            post_data=expected.post_data,
            content=expected.response_content,
            cookies=expected.response_cookies,
            post_shape=self.post_data_schema,
            query_shape=self.query_params_schema,
            ignored_query=(*map(_exactly, self.ignored_query_params), *self.ignored_query_params_patterns),
            base64_query=self.decode_base64_query,
            last_only=self.last_event_only,
            navigates=task_type == "navigate",
            last_page=task_type == "navigate" and expected.method == "GET" and expected.is_page,
            forbidden=self.should_not_exist,
        )


class VerifiedTask(Record):
    sites: tuple[Site, ...]
    task_id: int
    intent_template_id: int
    start_urls: tuple[str, ...]
    intent: str
    intent_template: str
    instantiation_dict: dict[str, Any]
    eval: tuple[Annotated[ResponseEvaluator | NetworkEvaluator, Field(discriminator="evaluator")], ...]
    revision: int

    def task(self) -> Task:
        kinds = {check.expected.task_type for check in self.eval if isinstance(check, ResponseEvaluator)}
        task_type = next(iter(kinds), "")
        return Task(
            id=self.task_id,
            sites=self.sites,
            start_urls=self.start_urls,
            intent=self.intent,
            template_id=self.intent_template_id,
            checks=tuple(evaluator.check(task_type) for evaluator in self.eval),
        )


class Subset(Record):
    """A file with the ids of a subset of the tasks."""

    description: str | None = None
    task_ids: tuple[int, ...]
    checksum: str = ""


def _exactly(name: str) -> str:
    return f"^{re.escape(name)}$"
