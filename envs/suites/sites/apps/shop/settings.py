"""Django's and Oscar's settings for one folder of the shop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from oscar import INSTALLED_APPS, defaults

from envs.suites.sites.apps import django_base

HERE = Path(__file__).parent
PACKAGE = "envs.suites.sites.apps.shop"
SHOP_NAME = "Harbour Lane"

ORDER_PIPELINE = {
    "Pending": ("Being processed", "Cancelled"),
    "Being processed": ("Shipped", "Cancelled"),
    "Shipped": ("Delivered", "Returned"),
    "Delivered": ("Returned",),
    "Returned": (),
    "Cancelled": (),
}
"""The possible next statuses of each order status."""

MIDDLEWARE = (
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "oscar.apps.basket.middleware.BasketMiddleware",
    "django.contrib.flatpages.middleware.FlatpageFallbackMiddleware",
)

CONTEXT_PROCESSORS = (
    "django.template.context_processors.request",
    "django.contrib.auth.context_processors.auth",
    "django.contrib.messages.context_processors.messages",
    "oscar.apps.search.context_processors.search_form",
    "oscar.apps.checkout.context_processors.checkout",
    "oscar.apps.communication.notifications.context_processors.notifications",
    "oscar.core.context_processors.metadata",
)

OSCAR: dict[str, Any] = {
    "HAYSTACK_CONNECTIONS": {"default": {"ENGINE": "haystack.backends.simple_backend.SimpleEngine"}},
    "HAYSTACK_SIGNAL_PROCESSOR": "haystack.signals.BaseSignalProcessor",
    "OSCAR_DYNAMIC_CLASS_LOADER": f"{PACKAGE}.overrides.load",
    "OSCAR_THUMBNAILER": f"{PACKAGE}.overrides.OriginalImageThumbnailer",
    "OSCAR_SHOP_NAME": SHOP_NAME,
    "OSCAR_SHOP_TAGLINE": "Good things for home and garden",
    "OSCAR_SAVE_SENT_EMAILS_TO_DB": False,
    "OSCAR_EAGER_ALERTS": False,
    "OSCAR_MODERATE_REVIEWS": True,
    "OSCAR_ALLOW_ANON_REVIEWS": False,
    "OSCAR_INITIAL_ORDER_STATUS": "Pending",
    "OSCAR_INITIAL_LINE_STATUS": "Pending",
    "OSCAR_ORDER_STATUS_PIPELINE": ORDER_PIPELINE,
    "OSCAR_LINE_STATUS_PIPELINE": ORDER_PIPELINE,
}
"""Overrides of Oscar's defaults. Haystack must be configured although `listing` replaces it."""


def configure(folder: Path) -> None:
    """Configures Django for *folder*. Call it once per process."""
    oscar = {name: value for name, value in vars(defaults).items() if name.isupper()} | OSCAR
    django_base.configure(
        folder,
        name="shop",
        apps=[name for name in INSTALLED_APPS if name != "django.contrib.admin"],
        middleware=MIDDLEWARE,
        SITE_ID=1,
        ROOT_URLCONF=f"{PACKAGE}.urls",
        AUTHENTICATION_BACKENDS=["oscar.apps.customer.auth_backends.EmailBackend"],
        TEMPLATES=[
            {
                "BACKEND": "django.template.backends.django.DjangoTemplates",
                "DIRS": [HERE / "templates"],
                "APP_DIRS": True,
                "OPTIONS": {"context_processors": CONTEXT_PROCESSORS},
            }
        ],
        **oscar,
    )
