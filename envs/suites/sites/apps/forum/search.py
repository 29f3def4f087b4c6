"""A Haystack search engine over the live database rows.

Spirit's default index is a folder of Whoosh files, which a reset would have to restore too. A few thousand rows need no
index. A topic matches if each word occurs in its title or in one of its comments.
"""

from __future__ import annotations

import json
from typing import Any

from django.db.models import Exists, OuterRef, Q
from haystack.backends import BaseEngine, BaseSearchBackend, BaseSearchQuery
from haystack.models import SearchResult
from spirit.comment.models import Comment
from spirit.core.conf import settings
from spirit.topic.models import Topic


class RowSearch(BaseSearchBackend):
    """Searches the tables; the newest activity comes first."""

    def update(self, *_: Any, **__: Any) -> None:
        """Does nothing: there is no index."""

    def remove(self, *_: Any, **__: Any) -> None:
        """Does nothing: there is no index."""

    def clear(self, *_: Any, **__: Any) -> None:
        """Does nothing: there is no index."""

    def search(self, query_string: str, **kwargs: Any) -> dict[str, Any]:
        query = json.loads(query_string)
        matches = _matching(str(query["text"]).split(), query["categories"])
        part = matches[kwargs.get("start_offset") or 0 : kwargs.get("end_offset")]
        return {"results": [_result(topic) for topic in part], "hits": matches.count()}


def _matching(words: list[str], categories: list[int] | None) -> Any:
    topics: Any = Topic.objects.visible().exclude(category_id=settings.ST_TOPIC_PRIVATE_CATEGORY_PK)
    for word in words:
        matching_comments = Comment.objects.filter(topic=OuterRef("pk"), is_removed=False, comment__icontains=word)
        topics = topics.filter(Q(title__icontains=word) | Exists(matching_comments))
    if categories is not None:
        topics = topics.filter(category_id__in=categories)
    return topics.select_related("category__parent").order_by("-last_active", "-pk")


def _result(topic: Any) -> SearchResult:
    return SearchResult(
        "spirit_topic",
        "topic",
        topic.pk,
        0,
        title=topic.title,
        slug=topic.slug,
        comment_count=topic.comment_count,
        last_active=topic.last_active,
        main_category_name=topic.main_category.title,
    )


class RowQuery(BaseSearchQuery):
    """Encodes the two fields of Spirit's search form: text and categories."""

    def build_query(self) -> str:
        text: list[str] = []
        categories: list[int] | None = None
        for field, value in _leaves(self.query_filter):
            if field.startswith("content"):
                text.append(str(getattr(value, "query_string", value)))
            elif field.startswith("category_id"):
                categories = [int(number) for number in value]
        return json.dumps({"text": " ".join(text), "categories": categories})


def _leaves(node: Any) -> list[tuple[str, Any]]:
    leaves: list[tuple[str, Any]] = []
    for child in node.children:
        leaves += _leaves(child) if hasattr(child, "children") else [child]
    return leaves


class RowEngine(BaseEngine):
    """The engine for `HAYSTACK_CONNECTIONS`."""

    backend = RowSearch
    query = RowQuery
