"""`acme:MODEL`: a chat model that clicks the first button it is shown."""

from __future__ import annotations

import re
from dataclasses import dataclass

from models import ChatModel, ChatReply, ChatRequest, ModelStatus, Usage
from models.provider import ModelOptions, ModelSpec, Provider


class AcmeChat:
    def __init__(self, spec: str) -> None:
        self.spec = spec

    async def complete(self, request: ChatRequest) -> ChatReply:
        prompt = "\n".join(message.text for message in request.messages)
        button = re.findall(r"\[(\d+)\] button", prompt)[-1]
        text = f'do(action="Click", element="{button}")'
        return ChatReply(text, Usage(tokens_in=len(prompt), tokens_out=1, cost_usd=0.0), self.spec, seconds=0.0)

    async def aclose(self) -> None: ...


@dataclass(frozen=True, slots=True)
class AcmeSpec(ModelSpec):
    model: str

    def __str__(self) -> str:
        return f"acme:{self.model}"

    def make(self, options: ModelOptions) -> ChatModel:
        return AcmeChat(str(self))

    def price_known(self, options: ModelOptions) -> bool:
        return True


def status(environ: object) -> ModelStatus:
    return ModelStatus("acme:MODEL", usable=True, detail="clicks buttons", examples=("acme:clicker",))


PROVIDER = Provider("acme:MODEL", AcmeSpec, status)
