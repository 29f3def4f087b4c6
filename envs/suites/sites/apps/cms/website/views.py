"""The public search view."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from wagtail.models import Page

LONGEST_LIST = 30


def search(request: HttpRequest) -> HttpResponse:
    """Renders at most 30 live pages that match `?query=`."""
    query = str(request.GET.get("query", "")).strip()
    results = list(Page.objects.live().search(query)[:LONGEST_LIST]) if query else []
    return render(request, "website/search.html", {"query": query, "results": [page.specific for page in results]})
