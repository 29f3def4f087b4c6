"""The table of misbehaviour, as far as it concerns a model in this process: it has no server, but it has answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from models.base import ModelError
from models.embedded import embedded_dir
from models.local.continuation import Arrivals, Job, Row, TextGenerator
from models.local.embedded_tokenizer import LightTokenizer
from models.providers.local_chat import LocalModel
from tests.models.providers.servers import Act, Reply
from tests.models.providers.speakers import Shopping, ask
from tests.models.providers.test_misbehaving_servers import CASES, Case


def is_answer(act: Act) -> bool:
    """Whether a model in this process can give it: text that ends by itself, or at the limit of tokens."""
    return isinstance(act, Reply) and act.finish in ("stop", "length") and act.refusal is None and act.text != ""


ANSWERS = [case for case in CASES if all(is_answer(act) for act in case.script)]


class ScriptedRuntime(TextGenerator):
    """Gives the answers of a case."""

    def __init__(self, script: Sequence[Act]) -> None:
        self.tokenizer = LightTokenizer(embedded_dir())
        self.jobs: list[Job] = []
        self._script = iter(script)

    def serve(self, arrivals: Arrivals) -> Iterator[Row]:
        while jobs := arrivals(0):
            self.jobs += jobs
            yield from map(self._row, jobs)

    def _row(self, job: Job) -> Row:
        act = next(self._script)
        assert isinstance(act, Reply)
        return Row(job, [5], [0.0], text=act.text, finish="length" if act.finish == "length" else "end")


@pytest.mark.parametrize("case", ANSWERS, ids=lambda case: case.name)
async def test_an_answer_is_parsed_repaired_or_refused(case: Case) -> None:
    runtime = ScriptedRuntime(case.script)
    model = LocalModel(runtime, 4096, "local:scripted")
    if case.error is None:
        reply = await model.complete(ask(schema=case.schema))
        assert reply.attempts == case.sent
        assert reply.text == "ok" or reply.parsed == Shopping(item="lamp", price=3.5)
    else:
        with pytest.raises(ModelError) as caught:
            await model.complete(ask(schema=case.schema))
        assert type(caught.value) is case.error
        assert caught.value.answered and caught.value.attempts == case.sent
        assert caught.value.usage is not None and caught.value.usage.tokens_out == case.sent
    await model.aclose()
    assert len(runtime.jobs) == case.sent


def test_the_table_has_answers_of_every_kind() -> None:
    names = {case.name for case in ANSWERS}
    assert names >= {"answers", "repaired-after-wrong-type", "repaired-after-prose", "fenced", "wrong-twice", "length"}
