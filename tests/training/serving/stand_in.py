"""A *stand-in* for vLLM: a real HTTP server that answers as vLLM 0.32 was seen to answer, statuses and bodies copied.

What its models say, transformers computes (`local:`), without a GPU and without vLLM's 3 GB.

`python -m tests.training.serving.stand_in serve MODEL --served-model-name NAME --host HOST --port PORT …` is one in a
process of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any

from models.base import ChatModel, ChatReply, ChatRequest, Message
from models.specs import make_model

NO_BASE = Path("/base")


class StandIn:
    """Speaks vLLM's `/v1/models`, `/v1/(un)load_lora_adapter` and, where there is a *base*, `/v1/chat/completions`."""

    def __init__(
        self, base: Path = NO_BASE, *, name: str = "policy", takes_adapters: bool = True, port: int = 0
    ) -> None:
        self.base = base
        self.name = name
        self.adapters: dict[str, str] = {}
        self.refused: list[tuple[int, dict[str, Any]]] = []
        """Responses that are sent first, to any request."""
        self.asked: list[str] = []
        self._models: dict[str, ChatModel] = {}
        self._loading = Lock()
        self._loop = asyncio.new_event_loop()
        Thread(target=self._loop.run_forever, daemon=True).start()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._answer({})

            def do_POST(self) -> None:
                self._answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

            def _answer(self, body: dict[str, Any]) -> None:
                outer.asked.append(self.path)
                status, reply = outer.refused.pop(0) if outer.refused else outer.answer(self.path, body, takes_adapters)
                data = json.dumps(reply).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: object) -> None:
                """Keeps the test output quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self._thread.start()

    def answer(self, path: str, body: dict[str, Any], takes_adapters: bool) -> tuple[int, Any]:
        if path == "/v1/models":
            base = {"id": self.name, "root": str(self.base), "parent": None, "max_model_len": 1024}
            loras = [{"id": name, "root": root, "parent": self.name} for name, root in self.adapters.items()]
            return 200, {"object": "list", "data": [base, *loras]}
        if path == "/v1/chat/completions":
            if body["model"] not in (self.name, *self.adapters):
                return 404, refusal(f"The model `{body['model']}` does not exist.", "NotFoundError", 404)
            return 200, _completion(body, self._said(body))
        if not takes_adapters:
            return 404, {"detail": "Not Found"}
        name = body["lora_name"]
        if path == "/v1/load_lora_adapter":
            if name in self.adapters and not body.get("load_inplace"):
                return 400, refusal(f"The lora adapter '{name}' has already been loaded.", "InvalidUserInput", 400)
            self.adapters[name] = body["lora_path"]
            return 200, f"Success: LoRA adapter '{name}' added successfully."
        if self.adapters.pop(name, None) is None:
            return 404, refusal(f"The lora adapter '{name}' cannot be found.", "NotFoundError", 404)
        return 200, f"Success: LoRA adapter '{name}' removed successfully."

    def _said(self, body: dict[str, Any]) -> ChatReply:
        with self._loading:
            if (name := body["model"]) not in self._models:
                adapter = f"+{self.adapters[name]}" if name in self.adapters else ""
                self._models[name] = make_model(f"local:{self.base}{adapter}")
        request = ChatRequest(
            tuple(Message(one["role"], one["content"]) for one in body["messages"]),
            temperature=body.get("temperature", 0.0),
            max_tokens=body.get("max_tokens") or 64,
            seed=body.get("seed"),
            logprobs=True,
        )
        return asyncio.run_coroutine_threadsafe(self._models[name].complete(request), self._loop).result(60)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)
        self._loop.call_soon_threadsafe(self._loop.stop)


def refusal(message: str, kind: str, code: int) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def _completion(body: dict[str, Any], reply: ChatReply) -> dict[str, Any]:
    prompt, ids = reply.prompt_token_ids or (), reply.completion_token_ids or ()
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": reply.text},
        "finish_reason": "stop",
        "token_ids": ids,
        "logprobs": {"content": [{"token": "", "logprob": one, "top_logprobs": []} for one in reply.logprobs or ()]},
    }
    usage = {"prompt_tokens": len(prompt), "completion_tokens": len(ids), "total_tokens": len(prompt) + len(ids)}
    return {
        "id": "cmpl",
        "object": "chat.completion",
        "model": body["model"],
        "prompt_token_ids": prompt,
        "choices": [choice],
        "usage": usage,
    }


def main() -> None:
    """Serves until SIGTERM."""
    parser = argparse.ArgumentParser()
    parser.add_argument("verb", choices=["serve"])
    parser.add_argument("model", type=Path)
    parser.add_argument("--served-model-name", required=True)
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--generation-config", choices=["vllm"], required=True)
    parser.add_argument("--enable-lora", action="store_true")
    parser.add_argument("--max-lora-rank", type=int, default=1)
    parser.add_argument("--lora-modules", default="")
    parser.add_argument("--chat-template", type=Path)
    parser.add_argument("--fail", help="say this, and do not come up")
    parser.add_argument("--answers", type=int, default=0, help="die before the next one")
    parser.add_argument("--child", type=Path, help="start a process that ends by itself in a minute, note its number")
    options = parser.parse_args()
    print("arguments:", *sys.argv[1:], flush=True)
    if options.fail:
        print(f"RuntimeError: {options.fail}\nRuntimeError: Engine core initialization failed.", file=sys.stderr)
        sys.exit(1)
    if options.child:
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
        options.child.write_text(str(child.pid))
    server = StandIn(options.model, name=options.served_model_name, port=options.port)
    if options.lora_modules:
        name, _, path = options.lora_modules.partition("=")
        server.adapters[name] = path
    pause = Event()
    while not options.answers or server.asked.count("/v1/chat/completions") <= options.answers:
        pause.wait(0.01)
    print("RuntimeError: out of memory", flush=True)
    os._exit(1)


if __name__ == "__main__":
    main()
