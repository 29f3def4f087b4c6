"""Tools: Python functions of the user that the policy may call between its actions on the page.

A tool is a function whose parameters pydantic can validate. The policy names it and writes its input: the text of the
only parameter if that is a string, else a JSON object of the parameters. Nothing of a page or a model is evaluated. The
result is shown to the policy as data at its next turn, with declared secrets masked."""

from __future__ import annotations

import asyncio
import inspect
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ArgsKwargs, to_json

from envs.core.actions import ActionResult, Reason, Status, UseTool
from envs.core.errors import BadInput
from envs.core.record import storable
from models.registry import TOOLS as GROUP
from models.registry import Registry

__all__ = ["Tool"]

TOOL_S: Final = 600.0
"""Seconds that a tool gets, which may ask a person."""
OUTPUT_CHARS: Final = 2_000
"""Longest result that the policy is shown; the rest is cut."""
_ERROR_CHARS: Final = 300
_NAME: Final = re.compile(r"[A-Za-z_]\w{0,63}")
_TYPES: Final = {"string": "text", "integer": "number", "boolean": "true or false", "array": "list"}


@dataclass(frozen=True)
class Tool:
    """A function that the policy may call."""

    function: Callable[..., Any]
    """Synchronous (called in a thread) or not. Its result is text, or anything that pydantic writes as JSON."""
    name: str = ""
    """Empty takes the function's."""
    description: str = ""
    """What it does, for the policy; empty takes the first paragraph of the docstring."""
    timeout_s: float = TOOL_S

    def __post_init__(self) -> None:
        """Raises BadInput for a function that no tool can be made of."""
        object.__setattr__(self, "name", self.name or getattr(self.function, "__name__", ""))
        described = self.description or (inspect.getdoc(self.function) or "").split("\n\n")[0]
        object.__setattr__(self, "description", " ".join(described.split()))
        if not _NAME.fullmatch(self.name):
            raise BadInput(f"tool {self.name!r}: a name is letters, digits and underscores: Tool(function, name=…)")
        if not self.description:
            raise BadInput(f"tool {self.name}: say what it does in its docstring, or by Tool(function, description=…)")
        for parameter in inspect.signature(self.function).parameters.values():
            if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
                raise BadInput(f"tool {self.name}: parameter {parameter.name!r} has no name that a call can give")
        try:
            self._schema  # noqa: B018 - built now, so that a wrong annotation is reported before the run
        except Exception as error:
            raise BadInput(f"tool {self.name}: its parameters cannot be described: {error}") from error

    @cached_property
    def _checked(self) -> TypeAdapter[Any]:
        function: Any = self.function
        return TypeAdapter(function)

    @cached_property
    def _schema(self) -> dict[str, Any]:
        return self._checked.json_schema()

    @property
    def _text_parameter(self) -> str:
        """The name of the only parameter, if it is a string; else empty."""
        parameters = self._schema.get("properties", {})
        (name,) = parameters if len(parameters) == 1 else ("",)
        return name if name and parameters[name].get("type") == "string" else ""

    @property
    def usage(self) -> str:
        """One line for the policy: the name, what it does, and its input."""
        return f"{self.name}: {self.description} Input: {self._input}"

    @property
    def _input(self) -> str:
        if self._text_parameter:
            return f"the {self._text_parameter} as text"
        parameters: Mapping[str, Any] = self._schema.get("properties", {})
        if not parameters:
            return "none"
        required = self._schema.get("required", ())
        listed = (
            f"{name} ({_TYPES.get(schema.get('type', ''), schema.get('type', 'any'))}"
            f"{'' if name in required else ', optional'})"
            for name, schema in parameters.items()
        )
        return f"JSON object of {', '.join(listed)}"

    async def call(self, text: str) -> str:
        """Calls the function with the *text* of an action. Raises its errors, ValidationError and ValueError for a
        wrong input, and TimeoutError."""
        arguments = ArgsKwargs((), self._arguments(text))
        async with asyncio.timeout(self.timeout_s):
            result = await asyncio.to_thread(self._checked.validate_python, arguments)
            if inspect.isawaitable(result):
                result = await result
        return result if isinstance(result, str) else "" if result is None else to_json(result, fallback=str).decode()

    def _arguments(self, text: str) -> dict[str, Any]:
        if self._text_parameter:
            return {self._text_parameter: text}
        if not text.strip():
            return {}
        try:
            arguments = json.loads(text)
        except ValueError as error:
            raise ValueError(f"the input is no JSON ({error}): write a {self._input}") from None
        if not isinstance(arguments, dict):
            raise ValueError(f"the input is not an object: write a {self._input}")
        return arguments


TOOLS: Final = Registry(GROUP, Tool, {}, error=BadInput)
"""Tools that installed packages add, for `--tools`."""


class Toolbox:
    """The tools of a run, by name."""

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        for tool in tools:
            if tool.name in self._tools:
                raise BadInput(f"two tools are called {tool.name}: Tool(function, name=…) names one otherwise")
            self._tools[tool.name] = tool

    def __bool__(self) -> bool:
        return bool(self._tools)

    @property
    def usages(self) -> tuple[tuple[str, str], ...]:
        """(name, line for the policy) of each tool."""
        return tuple((tool.name, tool.usage) for tool in self._tools.values())

    async def call(self, action: UseTool, mask: Callable[[str], str]) -> ActionResult:
        """Calls the tool that *action* names. A tool that fails, and a wrong input, are results that the policy is
        shown; *mask* removes secrets from them."""
        tool = self._tools.get(action.tool)
        if tool is None:
            message = f"there is no tool {action.tool!r}; tools are: {', '.join(self._tools) or 'none'}"
            return _failed(Reason.NO_SUCH_TOOL, message, mask)
        try:
            output = await tool.call(action.input)
        except Exception as error:  # noqa: BLE001 - a user's tool may raise anything
            return _failed(Reason.TOOL_FAILED, f"the tool failed: {_why(error, tool)}", mask)
        return ActionResult(status=Status.OK, output=_cut(mask(storable(output)), OUTPUT_CHARS))


def _failed(reason: Reason, message: str, mask: Callable[[str], str]) -> ActionResult:
    """The whole message is masked before it is cut: a part of a secret is not recognised."""
    return ActionResult(status=Status.FAILED, reason=reason, message=_cut(mask(storable(message)), _ERROR_CHARS))


def _why(error: Exception, tool: Tool) -> str:
    match error:
        case ValidationError():
            return "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
        case TimeoutError():
            return f"it took longer than {tool.timeout_s:g} s"
        case _:
            return str(error) or type(error).__name__


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


NO_TOOLS: Final = Toolbox()


def named_tools(names: Sequence[str], given: Sequence[Tool]) -> Toolbox:
    """The tools *names* of a configuration: *given* ones from Python, and those of installed packages. Raises BadInput
    for a name that is neither."""
    own = {tool.name: tool for tool in given}
    for name in names:
        if name not in own and name not in TOOLS:
            raise BadInput(
                f"there is no tool {name!r}: pass it from Python (tools=[…]), or install the package that adds it; "
                f"packages add: {', '.join(TOOLS.names) or 'none'}"
            )
    return Toolbox(own[name] if name in own else replace(TOOLS.load(name), name=name) for name in names)


def as_tools(tools: Iterable[Tool | Callable[..., Any]]) -> tuple[Tool, ...]:
    """Each function of *tools* as a tool. Raises BadInput for one that cannot be."""
    return tuple(tool if isinstance(tool, Tool) else Tool(tool) for tool in tools)
