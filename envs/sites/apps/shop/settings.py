"""Django's settings for one folder of the shop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from oscar import INSTALLED_APPS, defaults

from envs.sites.apps.base import DATABASE, FILES

HERE = Path(__file__).parent
YEAR_S = 365 * 24 * 3600
SHOP_NAME = "Harbour Lane"

ORDER_PIPELINE = {
    "Pending": ("Being processed", "Cancelled"),
    "Being processed": ("Shipped", "Cancelled"),
    "Shipped": ("Delivered", "Returned"),
    "Delivered": ("Returned",),
    "Returned": (),
    "Cancelled": (),
}
"""What may become of an order: status and the statuses that can follow it."""

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


def settings_for(folder: Path) -> dict[str, Any]:
    """Everything for `django.conf.settings.configure`: Oscar's defaults, then ours."""
    return {name: value for name, value in vars(defaults).items() if name.isupper()} | _django(folder) | _oscar()


def _django(folder: Path) -> dict[str, Any]:
    return {
        "DEBUG": False,
        "SECRET_KEY": "the shop keeps no secret: it is rebuilt for every episode",
        "ALLOWED_HOSTS": ["*"],
        "SITE_ID": 1,
        "INSTALLED_APPS": [name for name in INSTALLED_APPS if name != "django.contrib.admin"],
        "MIDDLEWARE": MIDDLEWARE,
        "ROOT_URLCONF": "envs.sites.apps.shop.urls",
        "DEFAULT_AUTO_FIELD": "django.db.models.BigAutoField",
        "DATABASES": {
            "default": {
                "ENGINE": "django.db.backends.sqlite3",
                "NAME": folder / DATABASE,
                "ATOMIC_REQUESTS": True,
                "OPTIONS": {"init_command": "PRAGMA synchronous=OFF", "transaction_mode": "IMMEDIATE"},
            }
        },
        "TEMPLATES": [
            {
                "BACKEND": "django.template.backends.django.DjangoTemplates",
                "DIRS": [HERE / "templates"],
                "APP_DIRS": True,
                "OPTIONS": {"context_processors": CONTEXT_PROCESSORS},
            }
        ],
        "AUTHENTICATION_BACKENDS": ["oscar.apps.customer.auth_backends.EmailBackend"],
        "PASSWORD_HASHERS": ["django.contrib.auth.hashers.MD5PasswordHasher"],  # fast, and there is nothing to guard
        "SESSION_COOKIE_AGE": YEAR_S,
        "CACHES": {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}},
        "EMAIL_BACKEND": "django.core.mail.backends.dummy.EmailBackend",
        "LANGUAGE_CODE": "en-gb",
        "USE_TZ": True,
        "TIME_ZONE": "UTC",
        "STATIC_URL": "/static/",
        "MEDIA_URL": "/media/",
        "MEDIA_ROOT": folder / FILES,
        "LOGGING": {
            "version": 1,
            "disable_existing_loggers": False,
            "handlers": {"stderr": {"class": "logging.StreamHandler"}},
            "root": {"handlers": ["stderr"], "level": "ERROR"},
        },
    }


def _oscar() -> dict[str, Any]:
    return {
        "HAYSTACK_CONNECTIONS": {"default": {"ENGINE": "haystack.backends.simple_backend.SimpleEngine"}},
        "HAYSTACK_SIGNAL_PROCESSOR": "haystack.signals.BaseSignalProcessor",
        "OSCAR_DYNAMIC_CLASS_LOADER": "envs.sites.apps.shop.overrides.load",
        "OSCAR_THUMBNAILER": "envs.sites.apps.shop.overrides.WholePicture",
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
