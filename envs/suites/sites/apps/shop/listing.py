"""The shop's listing and search, from the database instead of a search index.

It reads all products (a few hundred) and filters them here, so that changes are visible at once. A search matches
products that contain all its words. Matches in the title come first.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from django.conf import settings
from django.db.models import Min
from django.db.models.functions import Coalesce
from django.http import HttpRequest, HttpResponse
from django.views.generic.base import View
from django.views.generic.edit import FormMixin
from django.views.generic.list import MultipleObjectMixin, MultipleObjectTemplateResponseMixin
from oscar.core.loading import get_class, get_model

WORD = re.compile(r"[a-z0-9]+")
PLURAL_FROM = 4
"""Shortest word whose final s is removed as a plural."""
PRICES = [(str(name), query) for name, query in settings.OSCAR_SEARCH_FACETS["queries"]["price_range"]["queries"]]
"""Oscar's price ranges: name and query, such as `[20 TO 40]`."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A product as the listing needs it."""

    pk: int
    title: str
    kind: str
    """The product type's name."""
    price: float | None
    rating: int | None
    created: datetime
    title_words: frozenset[str]
    words: frozenset[str]
    """Words of title, description, code and type."""


class Result(NamedTuple):
    """A row in the form of Oscar's templates."""

    object: Any


def words(text: str) -> frozenset[str]:
    """The words of *text* in lower case and singular."""
    tokens = WORD.findall(text.lower())
    return frozenset(word.removesuffix("s") if len(word) >= PLURAL_FROM else word for word in tokens)


def entries(categories: Any = None) -> list[Entry]:
    """The public products, newest first, of *categories* only if given."""
    products = get_model("catalogue", "Product").objects.browsable()
    if categories is not None:
        products = products.filter(categories__in=categories).distinct()
    price = Coalesce(Min("stockrecords__price"), Min("children__stockrecords__price"))
    rows = products.annotate(least=price).values_list(
        "pk", "title", "description", "upc", "product_class__name", "least", "rating", "date_created"
    )
    return [
        Entry(
            pk=pk,
            title=title,
            kind=kind,
            price=None if least is None else float(least),
            rating=None if rating is None else int(rating),
            created=created,
            title_words=words(title),
            words=words(f"{title} {description} {upc} {kind}"),
        )
        for pk, title, description, upc, kind, least, rating, created in rows.order_by("-date_created", "pk")
    ]


def search_entries(among: Sequence[Entry], query: str) -> list[Entry]:
    """The entries that contain all words of *query*, those with most of them in the title first.

    A query without words matches nothing."""
    query_words = words(query)
    matching = [e for e in among if query_words and query_words <= e.words]
    return sorted(matching, key=lambda e: (-len(query_words & e.title_words), e.title))


def filter_entries(among: Sequence[Entry], facets: Mapping[str, Sequence[str]]) -> list[Entry]:
    """The entries that match a selected value of each facet."""
    remaining = list(among)
    for field, values in facets.items():
        match field:
            case "product_class":
                remaining = [e for e in remaining if e.kind in values]
            case "rating":
                remaining = [e for e in remaining if str(e.rating) in values]
            case "price":
                remaining = [e for e in remaining if any(_priced(e, query) for query in values)]
            case _:
                pass  # an unknown facet, in a hand-written URL, is ignored
    return remaining


def _priced(entry: Entry, query: str) -> bool:
    low, high = query.strip("[]").split(" TO ")
    return entry.price is not None and float(low) <= entry.price <= (float("inf") if high == "*" else float(high))


ORDERS: dict[str, tuple[Callable[[Entry], Any], bool]] = {
    "rating": (lambda e: -1 if e.rating is None else e.rating, True),
    "newest": (lambda e: e.created, True),
    "price-desc": (lambda e: -1.0 if e.price is None else e.price, True),
    "price-asc": (lambda e: float("inf") if e.price is None else e.price, False),
    "title-asc": (lambda e: e.title.lower(), False),
    "title-desc": (lambda e: e.title.lower(), True),
}
"""Values of `sort_by`: sort key and whether to reverse. Other values keep the order."""


def facet_counts(among: Sequence[Entry]) -> dict[str, dict[str, Any]]:
    """Number of entries per value of each facet, in Haystack's format."""
    kinds = Counter(e.kind for e in among)
    ratings = Counter(e.rating for e in among if e.rating is not None)
    prices = {f"price:{query}": sum(_priced(e, query) for e in among) for _, query in PRICES}
    return {
        "fields": {"product_class": sorted(kinds.items()), "rating": sorted(ratings.items(), reverse=True)},
        "queries": prices,
    }


class BaseSearchView(MultipleObjectTemplateResponseMixin, MultipleObjectMixin, FormMixin, View):
    """Replaces Oscar's Haystack view, with the same forms, templates and context."""

    paginate_by: int = settings.OSCAR_PRODUCTS_PER_PAGE
    object_list: list[int]
    form: Any

    def get_form_kwargs(self) -> dict[str, Any]:
        facets = self.request.GET.getlist("selected_facets")
        return super().get_form_kwargs() | {"data": self.request.GET, "selected_facets": facets}

    def get(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        self.form = self.get_form()
        self.form.is_valid()
        cleaned: dict[str, Any] = getattr(self.form, "cleaned_data", {})
        query = cleaned.get("q") or ""
        matching = self._matching(query)
        remaining = filter_entries(matching, self.form.selected_multi_facets)
        order = ORDERS.get(cleaned.get("sort_by") or "")
        if order is not None:
            remaining.sort(key=order[0], reverse=order[1])
        self.object_list = [entry.pk for entry in remaining]
        return self.render_to_response(
            self.get_context_data(form=self.form, query=query, facets=facet_counts(remaining))
        )

    def _matching(self, query: str) -> list[Entry]:
        """The matching entries. Without a query, a listing shows all entries and a search none."""
        categories = getattr(self.form, "categories", None)
        if query:
            return search_entries(entries(categories), query)
        return entries(categories) if isinstance(self.form, get_class("search.forms", "BrowseCategoryForm")) else []

    def paginate_queryset(self, queryset: Any, page_size: int) -> Any:
        """Paginates product keys and reads only the products of the requested page."""
        paginator, page, keys, several = super().paginate_queryset(queryset, page_size)
        product = get_model("catalogue", "Product")
        read = product.objects.base_queryset().in_bulk(list(keys))
        page.object_list = [Result(read[key]) for key in keys]
        return paginator, page, page.object_list, several

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        context = super().get_context_data(**kwargs)
        munger = get_class("search.facets", "FacetMunger")(
            self.request.get_full_path(), self.form.selected_multi_facets, context["facets"], query_type=type(self)
        )
        data = munger.facet_data()
        context |= {
            "facet_data": data,
            "has_facets": any(part["results"] for part in data.values()),
            "selected_facets": self.form.selected_facets,
            "page": context["page_obj"],
        }
        return context
