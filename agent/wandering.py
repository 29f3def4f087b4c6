"""A policy that only looks around: it follows links and opens menus by chance, and does nothing else.

Its runs teach where things are, with whatever goal fits what they found (:mod:`training.embedded.hindsight`).
"""

from __future__ import annotations

import random

from agent.policy import Proposal, Turn
from envs.actions import Action, Back, Click, Wait
from envs.languages import Language
from envs.observation import Element
from envs.sites.detours import only_looks

WANDER = "wander"


class Wandering:
    """Never twice through the same control in an episode while another is left; back where there is none.

    The same episode goes the same way each time it is played.
    """

    spec = WANDER

    def __init__(self, language: Language, seed: int = 0) -> None:
        self._language = language
        self._seed = seed

    async def propose(self, turn: Turn) -> Proposal:
        action = self._next(turn)
        return Proposal(action, self._language.show(action))

    def _next(self, turn: Turn) -> Action:
        rng = random.Random(f"wander {self._seed} {turn.task.id} {turn.attempt} {turn.step}")
        known = {past.target for past in turn.past}
        open_ones = [one for one in turn.view.observation.elements if _leads_on(one)]
        if new := [one for one in open_ones if one.key not in known]:
            return Click(ref=rng.choice(new).ref)
        if turn.past and not isinstance(turn.past[-1].action, Back):
            return Back()
        return Click(ref=rng.choice(open_ones).ref) if open_ones else Wait()


def _leads_on(element: Element) -> bool:
    """A link, a tab, or what opens a part of the page that is folded."""
    if not element.shown or "disabled" in element.states:
        return False
    if element.key.role == "link":
        return only_looks(element.key.name)
    if element.key.role == "tab":
        return "selected" not in element.states
    return element.key.role == "button" and "collapsed" in element.states and only_looks(element.key.name)
