"""The museum's page types and its contact details."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db import models
from django.utils.timezone import localdate
from wagtail.admin.panels import FieldPanel
from wagtail.contrib.settings.models import BaseSiteSetting, register_setting
from wagtail.fields import RichTextField
from wagtail.models import Page
from wagtail.search import index

RICH = ["h2", "h3", "bold", "italic", "ol", "ul", "link"]


class HomePage(Page):
    """The front page: a welcome text, the latest articles and the next events."""

    welcome = models.TextField(blank=True)

    content_panels: ClassVar[list[Any]] = [*Page.content_panels, FieldPanel("welcome")]
    search_fields: ClassVar[list[Any]] = [*Page.search_fields, index.SearchField("welcome")]
    subpage_types: ClassVar[list[str]] = ["website.SectionPage"]

    def get_context(self, request: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
        context = super().get_context(request, *args, **kwargs)
        context["articles"] = ArticlePage.objects.live().order_by("-published", "pk")[:5]
        context["events"] = EventPage.objects.live().filter(day__gte=localdate()).order_by("day", "pk")[:5]
        return context


class SectionPage(Page):
    """A section of the site: an introduction and a list of its pages."""

    introduction = models.TextField(blank=True)

    content_panels: ClassVar[list[Any]] = [*Page.content_panels, FieldPanel("introduction")]
    search_fields: ClassVar[list[Any]] = [*Page.search_fields, index.SearchField("introduction")]
    subpage_types: ClassVar[list[str]] = ["website.ArticlePage", "website.EventPage", "website.InfoPage"]

    def get_context(self, request: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
        context = super().get_context(request, *args, **kwargs)
        children: list[Any] = [page.specific for page in self.get_children().live()]
        context["children"] = sorted(children, key=lambda page: (page.sort_key, page.pk))
        return context


class InfoPage(Page):
    """A page with text, such as directions or staff."""

    body = RichTextField(blank=True, features=RICH)

    content_panels: ClassVar[list[Any]] = [*Page.content_panels, FieldPanel("body")]
    search_fields: ClassVar[list[Any]] = [*Page.search_fields, index.SearchField("body")]
    subpage_types: ClassVar[list[str]] = []

    @property
    def sort_key(self) -> str:
        return str(self.title)


class ArticlePage(Page):
    """An article: news, an exhibition or an object of the collection."""

    published = models.DateField("date")
    author = models.CharField(max_length=80)
    summary = models.TextField(max_length=400)
    picture = models.ForeignKey(
        "wagtailimages.Image", null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    body = RichTextField(blank=True, features=RICH)

    content_panels: ClassVar[list[Any]] = [
        *Page.content_panels,
        FieldPanel("published"),
        FieldPanel("author"),
        FieldPanel("summary"),
        FieldPanel("picture"),
        FieldPanel("body"),
    ]
    search_fields: ClassVar[list[Any]] = [
        *Page.search_fields,
        index.SearchField("author"),
        index.SearchField("summary"),
        index.SearchField("body"),
    ]
    subpage_types: ClassVar[list[str]] = []

    @property
    def sort_key(self) -> str:
        """Newest first."""
        return str(99_999_999 - int(f"{self.published:%Y%m%d}"))


class EventPage(Page):
    """An event on one day."""

    day = models.DateField()
    starts = models.TimeField()
    place = models.CharField(max_length=80)
    price = models.DecimalField("price in euros", max_digits=6, decimal_places=2)
    seats = models.PositiveIntegerField()
    summary = models.TextField(max_length=400)

    content_panels: ClassVar[list[Any]] = [
        *Page.content_panels,
        FieldPanel("day"),
        FieldPanel("starts"),
        FieldPanel("place"),
        FieldPanel("price"),
        FieldPanel("seats"),
        FieldPanel("summary"),
    ]
    search_fields: ClassVar[list[Any]] = [
        *Page.search_fields,
        index.SearchField("place"),
        index.SearchField("summary"),
    ]
    subpage_types: ClassVar[list[str]] = []

    @property
    def sort_key(self) -> str:
        return f"{self.day:%Y%m%d}"


class ContactDetails(BaseSiteSetting):
    """The contact details in the footer of every page."""

    telephone = models.CharField(max_length=40)
    email = models.EmailField()
    address = models.CharField(max_length=160)
    opening_hours = models.CharField(max_length=160)

    class Meta(BaseSiteSetting.Meta):
        verbose_name = "contact details"


register_setting(ContactDetails, icon="mail")
