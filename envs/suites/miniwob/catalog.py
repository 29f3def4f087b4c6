"""Assigns MiniWoB++ tasks to site categories."""

from __future__ import annotations

CATEGORIES: dict[str, tuple[str, ...]] = {
    "form": (
        "choose-date",
        "choose-list",
        "click-checkboxes",
        "click-option",
        "click-scroll-list",
        "copy-paste",
        "enter-",
        "find-word",
        "focus-text",
        "form-sequence",
        "guess-number",
        "login-user",
        "multi-",
        "number-checkboxes",
        "read-table",
        "resize-textarea",
        "scroll-text",
        "sign-agreement",
        "simple-",
        "text-",
        "use-",
    ),
    "mail": ("email-inbox",),
    "social": ("social-media",),
    "shop": ("book-flight", "buy-ticket", "order-food", "stock-market"),
    "search": ("navigate-tree", "phone-book", "search-engine"),
    "navigation": ("click-",),
}
"""Site category by prefix of the task's name. All others are `canvas`: drawing, dragging, shapes."""


def category(name: str) -> str:
    """The site category of a task, which selects few-shot examples."""
    for kind, beginnings in CATEGORIES.items():
        if name.startswith(beginnings):
            return kind
    return "canvas"
