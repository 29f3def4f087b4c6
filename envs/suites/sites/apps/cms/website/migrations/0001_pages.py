"""The tables of the page types and the contact details; written by Django, with the repetition taken out."""

from __future__ import annotations

import django.db.models.deletion
import wagtail.fields
from django.db import migrations, models


def page_type(name: str, *fields: tuple[str, models.Field]) -> migrations.CreateModel:
    """A page type: a table beside Wagtail's own, row by row."""
    page = models.OneToOneField(
        auto_created=True,
        on_delete=django.db.models.deletion.CASCADE,
        parent_link=True,
        primary_key=True,
        serialize=False,
        to="wagtailcore.page",
    )
    return migrations.CreateModel(
        name=name, fields=[("page_ptr", page), *fields], options={"abstract": False}, bases=("wagtailcore.page",)
    )


class Migration(migrations.Migration):
    initial = True
    dependencies = (("wagtailcore", "0098_apitoken"), ("wagtailimages", "0027_image_description"))
    operations = (
        page_type("HomePage", ("welcome", models.TextField(blank=True))),
        page_type("SectionPage", ("introduction", models.TextField(blank=True))),
        page_type("InfoPage", ("body", wagtail.fields.RichTextField(blank=True))),
        page_type(
            "ArticlePage",
            ("published", models.DateField(verbose_name="date")),
            ("author", models.CharField(max_length=80)),
            ("summary", models.TextField(max_length=400)),
            ("body", wagtail.fields.RichTextField(blank=True)),
            (
                "picture",
                models.ForeignKey(
                    blank=True,
                    null=True,
                    on_delete=django.db.models.deletion.SET_NULL,
                    related_name="+",
                    to="wagtailimages.image",
                ),
            ),
        ),
        page_type(
            "EventPage",
            ("day", models.DateField()),
            ("starts", models.TimeField()),
            ("place", models.CharField(max_length=80)),
            ("price", models.DecimalField(decimal_places=2, max_digits=6, verbose_name="price in euros")),
            ("seats", models.PositiveIntegerField()),
            ("summary", models.TextField(max_length=400)),
        ),
        migrations.CreateModel(
            name="ContactDetails",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("telephone", models.CharField(max_length=40)),
                ("email", models.EmailField(max_length=254)),
                ("address", models.CharField(max_length=160)),
                ("opening_hours", models.CharField(max_length=160)),
                (
                    "site",
                    models.OneToOneField(
                        editable=False, on_delete=django.db.models.deletion.CASCADE, to="wagtailcore.site"
                    ),
                ),
            ],
            options={"verbose_name": "contact details"},
        ),
    )
