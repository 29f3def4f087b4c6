"""Milestones of the tasks that search tabs, sections, menus and pages for an element and click it."""

from __future__ import annotations

from envs.suites.miniwob.milestones.checks import finished, holds, opened, shows
from envs.suites.miniwob.milestones.spec import Goal, MilestoneSpec, TaskMilestones, Verdict
from envs.suites.miniwob.state import PageState


def _menu_level(goal: Goal, state: PageState) -> Verdict:
    """Checks that the last item of `A>B>C` is shown, so every menu above it is open."""
    item = goal["path"].split(">")[-1]
    return Verdict(state.won or item in state.items, f"{item!r} in {list(state.items)[:12]!r}")


def _first_level(goal: Goal, state: PageState) -> Verdict:
    """Checks that the second item of `A>B>C` or one below it is shown: menus fade in, in any order."""
    path = goal["path"].split(">")
    below = path[1:] or path
    return Verdict(state.won or any(item in state.items for item in below), f"{below!r} in {list(state.items)[:12]!r}")


def _results(goal: Goal, state: PageState) -> Verdict:
    """Checks that result pages are shown while the field contains the right words, or that the episode was won."""
    pages = {"1", "2", "3"} <= set(state.items)
    typed = any(field.value == goal["words"] for field in state.fields)
    return Verdict(state.won or (pages and typed), f"result pages shown: {pages}, words typed: {typed}")


def _link(name: str, how: str) -> TaskMilestones:
    return TaskMilestones(
        r'link "(?P<link>.*)"\.?$',
        (
            MilestoneSpec("opened", f'A {name} that shows the link "{{link}}" is {how}', shows("{link}"), lasting=True),
            MilestoneSpec("clicked", 'The link "{link}" is clicked', finished),
        ),
    )


_SECTION = TaskMilestones(
    r"^Expand the section",
    (
        MilestoneSpec("opened", "The section is expanded", opened, lasting=True),
        MilestoneSpec("submitted", "The submit button is clicked", finished),
    ),
)
_TABS = _link("tab", "open")
_SECTIONS = _link("section", "expanded")

NAVIGATION_TASKS: dict[str, TaskMilestones] = {
    "click-collapsible": _SECTION,
    "click-collapsible-nodelay": _SECTION,
    "click-collapsible-2": _SECTIONS,
    "click-collapsible-2-nodelay": _SECTIONS,
    "click-tab-2": _TABS,
    "click-tab-2-easy": _TABS,
    "click-tab-2-medium": _TABS,
    "click-tab-2-hard": _TABS,
    "click-menu": TaskMilestones(
        r"^Select (?P<path>.*)$",
        (
            MilestoneSpec("first", "The first menu of {path} is open", _first_level, lasting=True),
            MilestoneSpec("last", "Every menu above the last item of {path} is open", _menu_level, lasting=True),
            MilestoneSpec("clicked", "The last item of {path} is clicked", finished),
        ),
    ),
    "click-menu-2": TaskMilestones(
        r'item labeled "(?P<item>.*)"\.$',
        (
            MilestoneSpec("menu", "The menu is open", shows("Playback"), lasting=True),
            MilestoneSpec("shown", 'The item "{item}" is shown', shows("{item}"), lasting=True),
            MilestoneSpec("clicked", 'The item "{item}" is clicked', finished),
        ),
    ),
    "navigate-tree": TaskMilestones(
        r'named "(?P<name>.*)"\.$',
        (
            MilestoneSpec("shown", 'The item "{name}" is shown', shows("{name}"), lasting=True),
            MilestoneSpec("clicked", 'The item "{name}" is clicked', finished),
        ),
    ),
    "search-engine": TaskMilestones(
        r'enter "(?P<words>.*)" and press "Search", then find and click the (?P<which>\d\w\w)',
        (
            MilestoneSpec("typed", 'The search field holds "{words}"', holds("words")),
            MilestoneSpec("results", 'Results for "{words}" are shown', _results, lasting=True),
            MilestoneSpec("clicked", "The {which} result is clicked", finished),
        ),
    ),
    "phone-book": TaskMilestones(
        r"^Find (?P<name>\w+) in the contact book and click on their (?P<what>.*)\.$",
        (
            MilestoneSpec("shown", "The contact {name} is shown", shows("{name}"), lasting=True),
            MilestoneSpec("clicked", "{name}'s {what} is clicked", finished),
        ),
    ),
}
