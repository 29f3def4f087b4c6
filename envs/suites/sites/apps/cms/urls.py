"""URL configuration of the CMS: admin, search and pages."""

from __future__ import annotations

from django.urls import include, path
from wagtail import urls as page_urls
from wagtail.admin import urls as admin_urls

from envs.suites.sites.apps.cms.website.views import search

urlpatterns = [
    path("admin/", include(admin_urls)),
    path("search/", search, name="search"),
    path("", include(page_urls)),
]
