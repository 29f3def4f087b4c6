"""The train, validation and test split, by template. No instance of a held-out template is used for training."""

from __future__ import annotations

from typing import Literal, get_args

Split = Literal["train", "validation", "test"]
SPLITS: tuple[Split, ...] = get_args(Split)

EVALUATION_SEEDS = 8
"""Instances 0 to 7 of every template are for evaluation. The curriculum's pool starts after them."""
POOL = 1_500
"""Number of tasks in the curriculum's pool."""

VALIDATION: frozenset[str] = frozenset(
    {
        "cms-contact-details",
        "cms-create-article",
        "cms-event-fact",
        "code-new-component",
        "code-replan",
        "code-ticket-owner",
        "forum-edit-comment-of-another",
        "forum-pin-topic",
        "forum-publish",
        "forum-topic-day",
        "map-drive-time",
        "map-nearest-phone",
        "multi-phone-to-forum",
        "shop-admin-add-note",
        "shop-admin-create-category",
        "shop-cheapest-with",
        "shop-create-wish-list",
        "shop-too-many",
        "shop-write-review",
    }
)
TEST: frozenset[str] = frozenset(
    {
        "cms-missing-page-type",
        "cms-publish-draft",
        "cms-rename-image",
        "cms-visitor-fact",
        "code-close-ticket",
        "code-new-choice",
        "code-no-such-ticket",
        "code-open-history",
        "code-reassign",
        "code-ticket-milestone",
        "code-wiki-fact",
        "forum-author-joined",
        "forum-comments-of-member",
        "forum-delete-comment",
        "forum-edit-comment",
        "forum-handle-flag",
        "forum-move-two-topics",
        "forum-vote-in-closed-poll",
        "map-address",
        "map-nearest-three",
        "map-open-walk",
        "map-phone",
        "map-phone-unknown",
        "map-website",
        "multi-topic-to-ticket",
        "shop-admin-create-coupon",
        "shop-admin-illegal-status",
        "shop-admin-moderate-review",
        "shop-admin-order-owner",
        "shop-admin-restock",
        "shop-change-address",
        "shop-compare",
        "shop-order-with-coupon",
        "shop-remove-from-wish-list",
        "shop-unknown-product",
    }
)


def split_of(name: str) -> Split:
    """The split of a template. Templates that are not held out are in `train`."""
    return "validation" if name in VALIDATION else "test" if name in TEST else "train"
