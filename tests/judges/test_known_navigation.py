"""The rater is shown a menu once; whatever could prove an open milestone stays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from envs.core.observation import Observation
from envs.core.tasks import Milestone
from judges.autorater_prompt import render
from judges.base import Progress
from judges.evidence import QuoteChecker
from judges.known_navigation import RUN
from tests.past_actions import clicked

Look = Callable[..., Observation]
MENU = '[1] link "Home"\n[2] link "Orders"  [3] link "Help" title "Ask us"\n[4] button "Menu" collapsed'
SHIFTED = MENU.replace("[", "[1")
LINE = f"=== {RUN} lines of links and buttons as on the page before"
PLAN = (Milestone(id="m1", text="Have 2 lamps in the cart"), Milestone(id="m2", text="Place it"))


def progress(now: str, before: Observation | None, look: Look, **changes: object) -> Progress:
    context = Progress("Buy lamps", look(now), (clicked("Add"),), PLAN, (False, False), previous=before)
    return replace(context, **changes)


def page_of(asked: Progress) -> str:
    return render(asked, (0, 1))[1].text.partition("⟦⟦DATA page⟧⟧")[2].partition("\n⟦⟦END page⟧⟧")[0]


def test_a_menu_of_the_page_before_is_one_line_whatever_its_numbers_are(look: Look) -> None:
    asked = progress(f"{SHIFTED}\n# Cart\nLamp | 2", look(f"# Lamps\n{MENU}"), look)
    assert page_of(asked).endswith(f"\n{LINE}\n# Cart\nLamp | 2")
    assert QuoteChecker(asked).rejects('link "Orders"') is None, "the whole page is read for quotes"


@pytest.mark.parametrize(
    "menu",
    [
        '[1] link "Home"\n[2] link "Help"\n[3] link "Cart (2)"',
        '[1] link "Home"\n[2] tab "Orders" selected\n[3] link "Help"',
        '[1] link "Home"\n[2] button "Orders" expanded\n[3] link "Help"',
        '[1] link "Home"\n[2] textbox "Search" = "lamp"\n[3] link "Help"',
        '[1] link "Home"\n[2] link "All" (selected?)\n[3] link "Help"',
        '[1] link "Home"\nLogged in as Ann\n[3] link "Help"',
        '[1] link "Home"\n[2] link "Help"',
    ],
    ids=["word of a milestone", "selected", "expanded", "value", "cue", "text", "short"],
)
def test_what_may_be_a_proof_stays(look: Look, menu: str) -> None:
    assert "===" not in page_of(progress(f"{menu}\n# Cart", look(menu), look))


def test_a_page_that_follows_no_rated_page_is_shown_whole(look: Look) -> None:
    whole = f"{MENU}\n# Cart"
    for asked in (
        progress(whole, None, look),
        progress(whole, look(MENU), look, unrated=True),
        progress(whole, look("# Else"), look),
    ):
        assert "===" not in page_of(asked)
