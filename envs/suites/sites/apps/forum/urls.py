"""Spirit at the root of the site."""

from __future__ import annotations

import spirit.urls
from django.urls import include, path

urlpatterns = [path("", include(spirit.urls))]
