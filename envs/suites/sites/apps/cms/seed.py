"""Fills the CMS: users with permissions, pictures, pages in all states, redirects."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from datetime import datetime, time, timedelta
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from random import Random
from typing import Any

import time_machine
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group, Permission
from django.core.files.images import ImageFile
from django.test import Client
from wagtail.contrib.redirects.models import Redirect
from wagtail.images import get_image_model
from wagtail.models import Page, Site, Workflow

from envs.suites.sites.apps.cms import pictures
from envs.suites.sites.apps.cms.website.models import (
    ArticlePage,
    ContactDetails,
    EventPage,
    HomePage,
    InfoPage,
    SectionPage,
)
from envs.suites.sites.apps.django_base import PASSWORD
from envs.suites.sites.clock import NOW

SEED = 11
TEXTS = Path(__file__).with_name("texts.toml")
EDITOR = "nora_field"
DIRECTOR = "ada_winterbourne"
RIGHTS = ("add_redirect", "change_redirect", "delete_redirect", "change_contactdetails")
"""Permissions of the editor beyond Wagtail's group of moderators."""
REDIRECTS = {
    "/boats": "Collection",
    "/whats-on": "Events",
    "/job": "Jobs",
    "/tram": "Getting here",
    "/prices": "Tickets",
}


class Museum:
    """State that the seeding functions share: random generator, texts, users and pictures."""

    def __init__(self) -> None:
        self.rng = Random(SEED)
        self.texts: dict[str, Any] = tomllib.loads(TEXTS.read_text(encoding="utf-8"))
        self.editor: Any = None
        self.director: Any = None
        self.pictures: list[Any] = []

    def sentences(self, kind: str, count: int) -> list[str]:
        patterns = self.rng.sample(self.texts["sentences"][kind], count)
        return [
            pattern.format(
                n=self.rng.randint(12, 95),
                m=self.rng.randint(5, 16),
                year=self.rng.randint(1640, 1930),
                place=self.rng.choice(self.texts["places"]),
            )
            for pattern in patterns
        ]

    def keyed(self, html: str) -> str:
        """Adds the editor's block keys to rich text, so that saving it again changes nothing."""
        letters = "abcdefghijklmnopqrstuvwxyz0123456789"
        return re.sub("<p>", lambda _: f'<p data-block-key="{"".join(self.rng.choices(letters, k=5))}">', html)


def fill() -> dict[str, Any]:
    """Fills the database. Returns the users of the personas."""
    museum = Museum()
    _people(museum)
    _pictures(museum)
    _pages(museum)
    _redirects()
    _visit_everything(museum.editor)
    return {"editor": museum.editor}


def _people(museum: Museum) -> None:
    users: Any = get_user_model()
    museum.director = users.objects.create_superuser(
        DIRECTOR, f"{DIRECTOR}@tidewater.test", PASSWORD, first_name="Ada", last_name="Winterbourne"
    )
    museum.editor = users.objects.create_user(
        EDITOR, f"{EDITOR}@tidewater.test", PASSWORD, first_name="Nora", last_name="Field"
    )
    team = Group.objects.create(name="Website team")
    team.permissions.set(Permission.objects.filter(codename__in=RIGHTS))
    museum.editor.groups.set([team, Group.objects.get(name="Moderators")])


def _pictures(museum: Museum) -> None:
    image_model: Any = get_image_model()
    for number, entry in enumerate(museum.texts["pictures"]):
        name = entry["title"].lower().replace(" ", "-").replace("'", "")
        content = pictures.draw(Random(SEED + number))
        image = image_model(title=entry["title"], uploaded_by_user=museum.director)
        image.file = ImageFile(BytesIO(content), name=f"{name}.jpg")
        with time_machine.travel(NOW - timedelta(days=300 - 20 * number), tick=False):
            image.save()
        museum.pictures.append(image)


def _pages(museum: Museum) -> None:
    root: Any = Page.objects.get(depth=1)
    for page in root.get_children():
        page.delete()
    root = Page.objects.get(depth=1)
    home = HomePage(title="Tidewater Museum", slug="home", welcome=museum.texts["welcome"], owner=museum.director)
    _publish(museum, root, home, NOW - timedelta(days=700))
    site: Any = Site.objects.create(
        hostname="cms.test", port=80, site_name="Tidewater Museum", root_page=home, is_default_site=True
    )
    details: Any = ContactDetails
    details.objects.create(site=site, **museum.texts["contact"])
    for entry in museum.texts["sections"]:
        section = SectionPage(title=entry["title"], introduction=entry["introduction"], show_in_menus=True)
        _publish(museum, home, section, NOW - timedelta(days=650))
        match entry["kind"]:
            case "article":
                _articles(museum, section, entry)
            case "event":
                _events(museum, section, entry)
            case _:
                _infos(museum, section, entry["pages"])


def _publish(museum: Museum, parent: Any, page: Any, when: datetime, state: str = "live") -> None:
    """Adds *page* below *parent* at the time *when*, in the state live, draft, scheduled or review."""
    page.owner = page.owner or museum.director
    page.live = False
    with time_machine.travel(when, tick=False):
        parent.add_child(instance=page)
        if state == "scheduled":
            page.go_live_at = NOW + timedelta(days=museum.rng.randint(2, 20))
        revision = page.save_revision(user=page.owner, log_action=False)
        if state in {"live", "scheduled"}:
            revision.publish(user=page.owner, skip_permission_checks=True)
        elif state == "review":
            workflow: Any = Workflow.objects.get()
            workflow.start(page, museum.director)
    page.refresh_from_db()


def _titles(entry: dict[str, Any]) -> list[tuple[str, str]]:
    """The titles of a section's pages with their states."""
    titles, states = entry["titles"], entry["states"]
    return list(zip(titles, ["live"] * (len(titles) - len(states)) + states, strict=True))


def _articles(museum: Museum, section: Any, entry: dict[str, Any]) -> None:
    pages = _titles(entry)
    for number, (title, state) in enumerate(pages):
        age = timedelta(days=12 + 19 * (len(pages) - number) + museum.rng.randint(0, 9))
        when = NOW - (age if state == "live" else timedelta(days=museum.rng.randint(1, 10)))
        paragraphs = museum.sentences("article", 4)
        page = ArticlePage(
            title=title,
            published=when.date(),
            author=museum.rng.choice(museum.texts["authors"]),
            summary=" ".join(museum.sentences("article", 2)),
            picture=museum.rng.choice(museum.pictures),
            body=museum.keyed("".join(f"<p>{paragraph}</p>" for paragraph in paragraphs)),
        )
        if state == "draft":
            page.owner = museum.editor
        _publish(museum, section, page, when, state)


def _events(museum: Museum, section: Any, entry: dict[str, Any]) -> None:
    for number, (title, state) in enumerate(_titles(entry)):
        page = EventPage(
            title=title,
            day=(NOW - timedelta(days=20)).date() + timedelta(days=7 * number + museum.rng.randint(0, 5)),
            starts=time(museum.rng.choice([10, 11, 14, 17, 18, 19]), museum.rng.choice([0, 30])),
            place=museum.rng.choice(museum.texts["places"]),
            price=Decimal(museum.rng.choice([0, 4, 5, 7, 8, 12])),
            seats=5 * museum.rng.randint(3, 24),
            summary=" ".join(museum.sentences("event", 2)),
        )
        when = NOW - timedelta(days=museum.rng.randint(21, 60))
        _publish(museum, section, page, when, state)


def _infos(museum: Museum, section: Any, entries: Sequence[dict[str, str]]) -> None:
    """Adds live pages. The second page of each section has unpublished changes."""
    for number, entry in enumerate(entries):
        page: Any = InfoPage(title=entry["title"], body=museum.keyed(entry["body"]))
        _publish(museum, section, page, NOW - timedelta(days=400 - 10 * number))
        if number == 1:
            page.body += museum.keyed("<p>This page is being revised.</p>")
            with time_machine.travel(NOW - timedelta(days=3), tick=False):
                page.save_revision(user=museum.editor)


def _redirects() -> None:
    site: Any = Site.objects.get()
    redirects: Any = Redirect
    for old, title in REDIRECTS.items():
        target: Any = Page.objects.get(title=title)
        redirects.objects.create(old_path=old, site=site, redirect_page=target, is_permanent=True)


def _visit_everything(editor: Any) -> None:
    """Opens each page once, so that Wagtail creates all image renditions."""
    client = Client(headers={"host": "cms.test"})
    for page in Page.objects.live().filter(depth__gt=1):
        _open(client, str(page.get_url()))
    client.force_login(editor)
    image_model: Any = get_image_model()
    paths = [f"/admin/images/{image.pk}/" for image in image_model.objects.all()]
    for path in ("/admin/", "/admin/images/", "/admin/images/chooser/", *paths):
        _open(client, path)
    client.logout()


def _open(client: Client, path: str) -> None:
    answer: Any = client.get(path)
    if answer.status_code != 200:
        raise ValueError(f"{path} answered {answer.status_code} while the CMS was built")
