"""Scripted servers of the vendors' tool protocols. They solve a rendered page from the pictures in the requests, and
note every request that breaks a rule of the protocol. No model plays here."""

from __future__ import annotations

import base64
import io
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from PIL import Image

from tests.models.providers.servers import Act, Body, Received

GREEN, RED = (0, 255, 0), (255, 0, 0)
FORM = """<!doctype html><title>Shop</title><style>
input, button { position: absolute; border: 0; padding: 0; outline: 0 }
input { left: 22%; top: 27%; width: 200px; height: 41px; background: #0f0; color: #0f0 }
button { left: 55%; top: 51%; width: 120px; height: 61px; background: #f00; color: #f00 }
</style><form method=post action=/buy><input name=who aria-label=Name><button>Buy</button></form>"""

Step = tuple[Any, ...]
"""`("click", x, y)`, `("type", text)`, `("observe",)`, `("finish", answer)` or `("call", name, arguments)`."""
Script = Callable[[int, bytes, str], list[Step]]
"""The steps of answer number n from the last picture and all text of the request."""


def middle(png: bytes, colour: tuple[int, int, int]) -> tuple[int, int]:
    """The middle of the area of *colour* in the picture."""
    image = Image.open(io.BytesIO(png)).convert("RGB")
    points = [
        (x, y) for y in range(0, image.height, 4) for x in range(0, image.width, 4) if image.getpixel((x, y)) == colour
    ]
    assert points, f"no {colour} in a picture of {image.size}"
    xs, ys = zip(*points, strict=True)
    return (min(xs) + max(xs)) // 2, (min(ys) + max(ys)) // 2


def orders(n: int, png: bytes, text: str) -> list[Step]:
    """Fills in the form by points, orders, and ends."""
    match n:
        case 0:
            return [("observe",)]
        case 1:
            return [("click", *middle(png, GREEN)), ("type", "Ann")]
        case 2:
            return [("click", *middle(png, RED))]
        case _:
            return [("finish", "ordered" if "Thanks" in text else "N/A: no thanks on the page")]


@dataclass
class ScriptedVendor:
    """A server's side of the conversation."""

    script: Script = orders
    answered: int = 0
    broken: list[str] = field(default_factory=list[str])
    """Rules of the protocol that a request broke."""
    bodies: list[Any] = field(default_factory=list[Any])

    def __call__(self, received: Received) -> Act:
        body = received.body
        self.bodies.append(body)
        self.check(body)
        text = json.dumps(self.last(body), ensure_ascii=False)
        answer = self.answer(self.script(self.answered, self.picture(body), text))
        self.answered += 1
        return Body(json.dumps(answer))

    def rule(self, holds: bool, text: str) -> None:
        if not holds:
            self.broken.append(text)

    def picture(self, body: Any) -> bytes:
        found = re.findall(r'(?:"data": "|base64,)([A-Za-z0-9+/=]{100,})"', json.dumps(self.last(body)))
        return base64.b64decode(found[-1]) if found else b""

    def last(self, body: Any) -> Any: ...
    def check(self, body: Any) -> None: ...
    def answer(self, steps: list[Step]) -> Any: ...


@dataclass
class ScriptedClaude(ScriptedVendor):
    family: str = "computer"
    """`browser`, `computer`, or `older` for the single tool of older models."""

    def last(self, body: Any) -> Any:
        return body["messages"][-1]

    def check(self, body: Any) -> None:
        messages = body["messages"]
        roles = [message["role"] for message in messages]
        self.rule(roles == (["user", "assistant"] * len(roles))[: len(roles)], f"roles {roles}")
        tools = [tool.get("type", "custom") for tool in body["tools"]]
        wanted = {"older": "computer_20250124"}.get(self.family, f"{self.family}_toolset_20260801")
        self.rule(wanted in tools, f"tools {tools}")
        self.rule("temperature" not in body, "temperature")
        for before, after in pairwise(messages):
            asked = [block for block in before["content"] if block["type"] == "tool_use"]
            kinds = [block["type"] for block in after["content"]]
            results = [block for block in after["content"] if block["type"] == "tool_result"]
            if before["role"] == "assistant":
                self.rule([b["id"] for b in asked] == [b["tool_use_id"] for b in results], "a result for every call")
                self.rule(kinds[: len(results)] == ["tool_result"] * len(results), f"results come first: {kinds}")
                self.rule(
                    [b.get("toolset_name") for b in asked] == [b.get("toolset_name") for b in results], "toolset names"
                )
            for result in results:
                content = [block["type"] for block in result["content"]]
                self.rule(not result.get("is_error") or content == ["text"], f"an error is text: {content}")
                self.rule(bool(content), "a result has content")

    def answer(self, steps: list[Step]) -> Any:
        content = [{"type": "thinking", "thinking": "", "signature": f"signed-{self.answered}"}]
        content += [self.block(place, step) for place, step in enumerate(steps)]
        stop = "end_turn" if all(block["type"] != "tool_use" for block in content) else "tool_use"
        usage = {"input_tokens": 100, "output_tokens": 10}
        return {"type": "message", "role": "assistant", "content": content, "stop_reason": stop, "usage": usage}

    def block(self, place: int, step: Step) -> dict[str, Any]:
        wire: dict[str, Any] = {"type": "tool_use", "id": f"toolu_{self.answered}_{place}"}
        match step:
            case ("say", text):
                return {"type": "text", "text": text}
            case ("finish", answer):
                return {**wire, "name": "finish", "input": {"answer": answer}}
            case ("function", name, arguments):
                return {**wire, "name": name, "input": arguments}
            case ("call", name, arguments):
                pass
            case ("observe",):
                name, arguments = "screenshot", {}
            case ("type", text):
                name, arguments = "type", {"text": text}
            case ("click", x, y):
                at = {"target": {"type": "coordinate", "x": x, "y": y}}
                name, arguments = "left_click", at if self.family == "browser" else {"coordinate": [x, y]}
            case _:
                raise AssertionError(step)
        if self.family == "older":
            return {**wire, "name": "computer", "input": {"action": name, **arguments}}
        return {**wire, "name": name, "toolset_name": self.family, "input": arguments}


@dataclass
class ScriptedOpenAI(ScriptedVendor):
    checks: dict[int, list[dict[str, str]]] = field(default_factory=dict[int, list[dict[str, str]]])
    """Pending safety checks by the number of the answer."""
    preview: bool = False

    def last(self, body: Any) -> Any:
        items = body["input"]
        place = max((i for i, item in enumerate(items) if item.get("type", "").endswith("_call")), default=-1)
        return items[place + 1 :]

    def check(self, body: Any) -> None:
        items = body["input"]
        calls = [item["call_id"] for item in items if item.get("type") in ("computer_call", "function_call")]
        results = [item["call_id"] for item in items if item.get("type", "").endswith("_call_output")]
        self.rule(calls == results, f"calls {calls}, results {results}")
        pending = {
            item["call_id"]: item["pending_safety_checks"] for item in items if item.get("type") == "computer_call"
        }
        for item in items:
            if item.get("type") == "computer_call_output":
                accepted = item.get("acknowledged_safety_checks", [])
                self.rule(accepted == pending[item["call_id"]], f"checks accepted: {accepted}")
                self.rule(item["output"]["image_url"].startswith("data:image/png;base64,"), "a picture")
        kinds = [tool["type"] for tool in body["tools"]]
        self.rule(("computer_use_preview" if self.preview else "computer") in kinds, f"tools {kinds}")
        self.rule(body["store"] is False, "nothing is stored")

    def answer(self, steps: list[Step]) -> Any:
        output: list[dict[str, Any]] = [{"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"}]
        actions: list[dict[str, Any]] = []
        for step in steps:
            match step:
                case ("observe",):
                    actions.append({"type": "screenshot"})
                case ("click", x, y):
                    actions.append({"type": "click", "button": "left", "x": x, "y": y})
                case ("type", text):
                    actions.append({"type": "type", "text": text})
                case ("action", action):
                    actions.append(action)
                case ("finish", answer):
                    output.append(self.function("finish", {"answer": answer}))
                case ("function", name, arguments):
                    output.append(self.function(name, arguments))
                case ("say", text):
                    part = {"type": "output_text", "text": text, "annotations": []}
                    output.append({"type": "message", "role": "assistant", "content": [part]})
                case _:
                    raise AssertionError(step)
        if actions:
            call = {"type": "computer_call", "id": "cu_1", "call_id": f"call_{self.answered}", "status": "completed"}
            wire = {"action": actions[0]} if self.preview else {"actions": actions}
            output.append({**call, **wire, "pending_safety_checks": self.checks.get(self.answered, [])})
        usage = {"input_tokens": 100, "output_tokens": 10, "output_tokens_details": {"reasoning_tokens": 4}}
        return {"id": "resp_1", "object": "response", "status": "completed", "output": output, "usage": usage}

    def function(self, name: str, arguments: Any) -> dict[str, Any]:
        called = {"name": name, "arguments": json.dumps(arguments)}
        return {"type": "function_call", "id": "fc_1", "call_id": f"fn_{self.answered}", **called}
