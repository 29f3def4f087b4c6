"""When a batch is done to its end, and when its rest is dropped: one page for each kind of change, in one episode."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from agent.episode.policy import Turn
from agent.run.runner import run_open
from envs.core.action_languages import PROGRAM
from envs.core.actions import Action, Click, Goto, Select, Stop, Type
from envs.core.observation import Observation
from envs.core.trace_store import Trace, read_trace
from tests.agent.batching import ScriptedAnswers
from tests.agent.shop import config
from tests.conftest import Site

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180), pytest.mark.usefixtures("shared_chromium")]

Named = Callable[[Observation], Action]


def of(observation: Observation, name: str, rank: int = 0) -> int:
    return [element.ref for element in observation.elements if element.key.name == name][rank]


def typed(name: str, text: str = "x") -> Named:
    return lambda observation: Type(ref=of(observation, name), text=text)


def clicked(name: str, rank: int = 0) -> Named:
    return lambda observation: Click(ref=of(observation, name, rank))


def chosen(name: str, option: str) -> Named:
    return lambda observation: Select(ref=of(observation, name), option=option)


@dataclass(frozen=True)
class Case:
    page: str
    answer: Sequence[Named]
    done: int
    """Actions of the answer that are sent."""
    stop: str = ""
    """Name of the reason; empty where all are done."""
    failed: bool = False
    """The last action that is sent fails."""


FIELDS = "<label>A <input></label><br><label>B <input></label><br>"
SEND = "<button type=button onclick='this.after(\"sent\")'>Send</button>"
ROW = "<tr><td>{0}<td><button onclick='this.closest(\"tr\").remove()'>Delete</button>"
ROWS = "<table>" + "".join(map(ROW.format, ("Ann", "Bob", "Cid"))) + "</table>"
AB = (typed("A"), typed("B"))

CASES = {
    "a form": Case(
        FIELDS + "<label><input type=checkbox>C</label><br><label>D <select><option>1<option>2</select></label>" + SEND,
        (*AB, clicked("C"), chosen("D", "2"), clicked("Send")),
        done=5,
    ),
    "a field with a button to clear it": Case(
        "<div><label>A <input oninput='c.hidden=!this.value'></label><button id=c hidden>Clear</button></div>"
        "<label>B <input></label><br>" + SEND,
        (*AB, clicked("Send")),
        done=3,
    ),
    "a clock": Case(
        "<p id=t>10:00:00</p>" + FIELDS + SEND + "<script>addEventListener('input', () => t.innerText = '10:00:0'"
        " + document.querySelector('input').value.length)</script>",
        (*AB, clicked("Send")),
        done=3,
    ),
    "a button that the last field enables": Case(
        "<label>A <input oninput='s.disabled=false'></label><br><button id=s disabled>Send</button>",
        (typed("A"), clicked("Send")),
        done=2,
    ),
    "a disabled field": Case("<label>A <input disabled></label><br><label>B <input></label>", AB, 1, "FAILED", True),
    "a new address": Case(
        "<button onclick='history.pushState(0,0,\"?2\")'>Go</button>" + FIELDS,
        (clicked("Go"), typed("A")),
        1,
        "ADDRESS",
    ),
    "a document that was loaded again": Case(
        "<button onclick='location.reload()'>Go</button>" + FIELDS, (clicked("Go"), typed("A")), 1, "DOCUMENT"
    ),
    "a dialog": Case("<button onclick='alert(1)'>Go</button>" + FIELDS, (clicked("Go"), typed("A")), 1, "DIALOG"),
    "a new tab": Case(
        "<button onclick='window.open(location.pathname+\"?new\")'>Go</button>" + FIELDS,
        (clicked("Go"), typed("A")),
        1,
        "TAB",
    ),
    "a field that is gone": Case(
        "<label>A <input oninput='b.remove()'></label><br><label id=b>B <input></label>", AB, 1, "CONTROLS"
    ),
    "another name": Case(
        "<button onclick='this.innerText=\"Unfollow\"'>Follow</button>", [clicked("Follow")] * 2, 1, "CONTROLS"
    ),
    "rows that moved up": Case(ROWS, (clicked("Delete", 0), clicked("Delete", 1)), 1, "CONTROLS"),
    "rows that changed places": Case(
        ROWS + '<button onclick=\'document.querySelector("tbody").append(document.querySelector("tr"))\'>Sort</button>',
        (clicked("Sort"), clicked("Delete", 0)),
        1,
        "CONTROLS",
    ),
    "a box that another one checks": Case(
        "<label><input type=checkbox onclick='o.checked=true'>All</label><br>"
        "<label><input type=checkbox id=o>One</label>",
        (clicked("All"), clicked("One")),
        1,
        "CONTROLS",
    ),
    "another view at the same address": Case(
        "<div id=v><button onclick='v.innerHTML=n.innerHTML'>Next</button><a href=#1>1</a> <a href=#2>2</a></div>"
        "<label>A <input></label><template id=n><button>Buy</button></template>",
        (clicked("Next"), typed("A")),
        1,
        "CONTROLS",
    ),
    "a total that changed": Case(
        "<label>D <select onchange='t.innerText=90'><option>1<option>2</select></label><p>Total <b id=t>10</b></p>"
        "<label><input type=checkbox>C</label><br><button>Pay</button>",
        (chosen("D", "2"), clicked("C"), clicked("Pay")),
        2,
        "WORDS",
    ),
    "suggestions": Case(
        "<label>A <input oninput='s.hidden=false'></label><ul id=s hidden><li><a href=#x>Oslo</a></ul>"
        "<label>B <input></label><br>" + SEND,
        (*AB, clicked("Send")),
        2,
        "WORDS",
    ),
    "a value that the page changed": Case(
        "<label>A <input oninput='b.value=this.value'></label><br><label>B <input id=b></label><br>" + SEND,
        (typed("A"), clicked("Send")),
        1,
        "WORDS",
    ),
    "a modal": Case(
        "<button onclick='m.showModal()'>Go</button>" + FIELDS + "<dialog id=m><button>Close</button></dialog>",
        (clicked("Go"), typed("A"), typed("B")),
        1,
        "CONTROLS",
    ),
    "a layer that covers the page": Case(
        "<button onclick='m.hidden=false'>Go</button>" + FIELDS + "<div id=m hidden style='position:fixed;inset:0;"
        "background:#fff'><button>Close</button></div>",
        (clicked("Go"), typed("A"), typed("B")),
        1,
        "CONTROLS",
    ),
}


async def test_a_batch_ends_where_the_page_is_not_what_was_planned(site: Site, tmp_path: Path) -> None:
    paths = {f"/{number}": name for number, name in enumerate(CASES)}
    site.pages |= {path: f"<!doctype html><title>{name}</title>{CASES[name].page}" for path, name in paths.items()}
    site.pages["/"] = "start"
    left = list(paths)

    def script(turn: Turn) -> Sequence[Action]:
        observation = turn.view.observation
        path = "/" + observation.url.rpartition("/")[2]
        if turn.past and isinstance(turn.past[-1].action, Goto) and path in paths:
            return [action(observation) for action in CASES[paths[path]].answer]
        return [Goto(url=site.url(left.pop(0)))] if left else [Stop()]

    settings = config(limits={"max_steps": 200, "max_seconds": 0}, planner="none", judge="none")
    policy = ScriptedAnswers(script, PROGRAM)
    run = await run_open(settings, "Fill in", site.url("/"), tmp_path, run_id="r", policy=policy)
    trace = read_trace(run.folder / run.episodes[0].trace)
    assert left == [] and trace.footer is not None and trace.footer.ended_by == "stop", trace.footer
    seen = {name: outcome(trace, site.url(path)) for path, name in paths.items()}
    assert seen == {name: (case.done, case.stop, case.failed) for name, case in CASES.items()}


def outcome(trace: Trace, url: str) -> tuple[int, str, bool]:
    """Actions that were sent on the page, the reason why the batch stopped, and whether the last one failed."""
    places = [
        i for i, (intent, _) in enumerate(trace.steps) if isinstance(intent.action, Goto) and intent.action.url == url
    ]
    begin = places[0] + 1
    steps = [step for step in trace.steps[begin:] if not isinstance(step.intent.action, Goto | Stop)]
    size = next((step.intent.batch.size for step in steps[:1] if step.intent.batch), 1)
    own = [step for step in steps[:size] if step.intent.batch and step.intent.batch.size == size]
    count = next(
        (i for i, step in enumerate(own) if i and step.intent.batch and step.intent.batch.place == 1), len(own)
    )
    own = own[:count]
    assert [step.intent.batch.place for step in own if step.intent.batch] == list(range(1, count + 1))
    stops = [
        event.detail for event in trace.events if event.name == "batch_stopped" and event.step == own[-1].intent.step
    ]
    commit = own[-1].commit
    assert commit is not None
    return count, stops[0].partition(":")[0].upper() if stops else "", not commit.result.ok
