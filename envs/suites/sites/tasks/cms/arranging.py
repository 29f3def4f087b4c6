"""CMS tasks that move pages, add redirects, rename images and change the contact details."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from envs.suites.sites.changes import Inserted, Test, Updated
from envs.suites.sites.evidence import PagePattern
from envs.suites.sites.page_driver import PageDriver
from envs.suites.sites.tasks.cms.shared import (
    IN_ADMIN,
    LIVE,
    PAGE,
    InPage,
    choose,
    form_goals,
    open_form,
    pages,
    revisions,
    wait_for,
)
from envs.suites.sites.templates import (
    Goal,
    GoldenStates,
    Milestones,
    Outcome,
    Params,
    Template,
    all_of,
    any_of,
    changed,
    sent,
    visited,
)

REDIRECT = "wagtailredirects_redirect"
IMAGE = "wagtailimages_image"
CONTACT = "website_contactdetails"


@dataclass(frozen=True)
class Moved(InPage):
    slug: str
    target: str
    target_id: int
    target_path: str
    """The target's `path` in the page tree."""
    left: int
    """Number of children of the old section, including this page."""
    right: int
    """Number of children of the new section before the move."""


def starts(text: str) -> Test:
    """Tests that a value starts with *text*."""
    return lambda value: isinstance(value, str) and value.startswith(text)


class MovePage(Template[Moved]):
    name = "cms-move-page"
    sites = ("cms",)
    category = "cms"
    kind = "configuration"
    difficulty = "hard"
    start = IN_ADMIN
    wordings = (
        'Move the page "{title}" from {section} to {target}.',
        '"{title}" belongs below {target}, not below {section}. Move it there.',
    )

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[Moved]:
        rows = golden.database("cms").rows(f"SELECT title, id, path, numchild FROM {PAGE} WHERE depth = 3 ORDER BY id")
        sections = {title: (page, path, children) for title, page, path, children in rows}
        moves: list[Moved] = []
        for row in pages(golden, f"{LIVE} AND s.title IN ('News', 'Exhibitions', 'Collection')"):
            target = rng.choice([name for name in ("News", "Exhibitions", "Collection") if name != row.section])
            page, path, children = sections[target]
            moves.append(
                row.into(
                    Moved,
                    slug=row.path.rsplit("/", 2)[1],
                    target=target,
                    target_id=page,
                    target_path=path,
                    left=sections[row.section][2],
                    right=children,
                )
            )
        return moves

    def milestones(self, p: Moved) -> Milestones:
        form = PagePattern("cms", rf"/admin/pages/{p.page}/move/")
        listed, _ = form_goals(p)
        moved = changed("cms", PAGE, id=p.page, path=starts(p.target_path))
        return (
            listed,
            Goal(f'The form for moving "{p.title}" is open', visited(form)),
            Goal("The move was confirmed", any_of(sent(PagePattern("cms", rf"/admin/pages/{p.page}/move/.*")), moved)),
            Goal(f'"{p.title}" is below {p.target}', moved),
        )

    def outcome(self, p: Moved) -> Outcome:
        page = {"path": starts(p.target_path), "url_path": f"/home/{p.target.lower()}/{p.slug}/"}
        return Outcome(
            changes={
                "cms": (
                    Updated(PAGE, {"id": p.page}, page),
                    Updated(PAGE, {"id": p.parent}, {"numchild": p.left - 1}),
                    Updated(PAGE, {"id": p.target_id}, {"numchild": p.right + 1}),
                )
            },
            allowed={
                "cms": (
                    *revisions(p.page),
                    Inserted(REDIRECT, {"redirect_page_id": p.page, "automatically_created": 1}),
                )
            },
        )

    async def solve(self, driver: PageDriver, p: Moved) -> str | None:
        await open_form(driver, p.title)
        await driver.click("button", "Actions")
        await driver.click("link", "Move")
        await driver.click("button", "Actions")
        await driver.click("button", "Choose another page")
        await choose(driver, p.target)
        await driver.click("button", "Confirm")
        await driver.click("button", "Yes, move this page")
        return None


@dataclass(frozen=True)
class NewRedirect(InPage):
    old: str


OLD_PATHS = ("/summer", "/flyer", "/poster", "/newsletter", "/qr", "/radio")


class AddRedirect(Template[NewRedirect]):
    name = "cms-add-redirect"
    sites = ("cms",)
    category = "cms"
    kind = "configuration"
    difficulty = "hard"
    start = IN_ADMIN
    wordings = (
        'Add a permanent redirect from {old} to the page "{title}", for all sites.',
        'Visitors who open {old} should end up on the page "{title}". Set up a permanent redirect (all sites).',
    )

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[NewRedirect]:
        targets = pages(golden, f"{LIVE} AND s.title IN ('Visit', 'About')")
        return [row.into(NewRedirect, old=old) for row in targets for old in rng.sample(OLD_PATHS, 4)]

    def milestones(self, p: NewRedirect) -> Milestones:
        form = PagePattern("cms", "/admin/redirects/add/")
        return (
            Goal("The redirects are open", visited(PagePattern("cms", r"/admin/redirects/(add/)?"))),
            Goal("The form for a new redirect is open", visited(form)),
            Goal(f"A redirect from {p.old} exists", changed("cms", REDIRECT, old_path=p.old)),
            Goal("The redirect leads to the page", changed("cms", REDIRECT, old_path=p.old, redirect_page_id=p.page)),
        )

    def outcome(self, p: NewRedirect) -> Outcome:
        values = {
            "old_path": p.old,
            "redirect_page_id": p.page,
            "redirect_link": "",
            "is_permanent": 1,
            "site_id": None,
        }
        return Outcome(changes={"cms": (Inserted(REDIRECT, values),)})

    async def solve(self, driver: PageDriver, p: NewRedirect) -> str | None:
        await driver.click("button", "Settings")
        await driver.click("link", "Redirects")
        await driver.click("link", "Add redirect")
        await driver.type("textbox", "Redirect from*", p.old)
        await driver.click("button", "Choose a page")
        for above in ("Tidewater Museum", p.section):
            await wait_for(driver, "link", "Explore", row=f'"{above}"')
            await driver.click("link", "Explore", row=f'"{above}"')
        await choose(driver, p.title)
        await driver.click("button", "Create")
        return None


@dataclass(frozen=True)
class Picture(Params):
    image: int
    title: str
    new: str


PICTURE_TITLES = ("Inventory 1204", "Cover of the spring leaflet", "Banner for the front page")


class RenameImage(Template[Picture]):
    name = "cms-rename-image"
    sites = ("cms",)
    category = "cms"
    kind = "content"
    difficulty = "easy"
    start = IN_ADMIN
    wordings = (
        'Rename the image "{title}" to "{new}".',
        'In the image library, give the picture "{title}" the title "{new}".',
    )

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[Picture]:
        rows = golden.database("cms").rows(f"SELECT id, title FROM {IMAGE} ORDER BY id")
        return [Picture(image, title, new) for image, title in rows for new in PICTURE_TITLES]

    def milestones(self, p: Picture) -> Milestones:
        form = PagePattern("cms", rf"/admin/images/{p.image}/")
        return (
            Goal("The library is open", visited(PagePattern("cms", r"/admin/images/.*"))),
            Goal(f'The form of "{p.title}" is open', visited(form)),
            Goal("The form was sent", sent(form)),
            Goal("The image has its new title", changed("cms", IMAGE, id=p.image, title=p.new)),
        )

    def outcome(self, p: Picture) -> Outcome:
        return Outcome(changes={"cms": (Updated(IMAGE, {"id": p.image}, {"title": p.new}),)})

    async def solve(self, driver: PageDriver, p: Picture) -> str | None:
        await driver.click("link", "Images")
        await driver.click("link", p.title)
        await driver.type("textbox", "Title*", p.new)
        await driver.click("button", "Save")
        return None


@dataclass(frozen=True)
class Details(Params):
    telephone: str
    hours: str


TELEPHONES = ("+99 555 0160", "+99 555 0177", "+99 555 0188", "+99 555 0193")
HOURS = ("Tuesday to Sunday, 9 am to 6 pm", "Wednesday to Sunday, 10 am to 5 pm", "Every day, 11 am to 4 pm")


class ContactDetails(Template[Details]):
    name = "cms-contact-details"
    sites = ("cms",)
    category = "cms"
    kind = "configuration"
    difficulty = "medium"
    start = IN_ADMIN
    wordings = (
        "In the site's contact details, set the telephone to {telephone} and the opening hours to: {hours}",
        "The footer of the site is out of date. New telephone: {telephone}. New opening hours: {hours}",
    )

    def candidates(self, golden: GoldenStates, rng: random.Random) -> Sequence[Details]:
        return [Details(telephone, hours) for telephone in TELEPHONES for hours in HOURS]

    def milestones(self, p: Details) -> Milestones:
        form = PagePattern("cms", r"/admin/settings/website/contactdetails/(\d+/)?")
        telephone = changed("cms", CONTACT, telephone=p.telephone)
        return (
            Goal("The contact details are open", visited(form)),
            Goal("The contact details were saved", sent(form)),
            Goal("The telephone is new", telephone),
            Goal("The opening hours are new too", all_of(telephone, changed("cms", CONTACT, opening_hours=p.hours))),
        )

    def outcome(self, p: Details) -> Outcome:
        to = {"telephone": p.telephone, "opening_hours": p.hours}
        return Outcome(changes={"cms": (Updated(CONTACT, {}, to),)})

    async def solve(self, driver: PageDriver, p: Details) -> str | None:
        await driver.click("button", "Settings")
        await driver.click("link", "Contact details")
        await driver.type("textbox", "Telephone*", p.telephone)
        await driver.type("textbox", "Opening hours*", p.hours)
        await driver.click("button", "Save")
        return None


ARRANGING: tuple[Template[Any], ...] = (MovePage(), AddRedirect(), RenameImage(), ContactDetails())
