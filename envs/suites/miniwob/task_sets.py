"""Sets of MiniWoB++ tasks: those on which the embedded model is measured, longer ones, and held-out seeds."""

from __future__ import annotations

NAMED_TASKS: tuple[str, ...] = (
    "choose-list",
    "click-button",
    "click-button-sequence",
    "click-checkboxes",
    "click-checkboxes-transfer",
    "click-collapsible",
    "click-collapsible-nodelay",
    "click-collapsible-2",
    "click-collapsible-2-nodelay",
    "click-dialog",
    "click-dialog-2",
    "click-link",
    "click-option",
    "click-scroll-list",
    "click-tab",
    "click-tab-2",
    "click-tab-2-easy",
    "click-tab-2-medium",
    "click-test",
    "click-test-2",
    "click-test-transfer",
    "enter-password",
    "enter-text",
    "enter-text-dynamic",
    "focus-text",
    "focus-text-2",
    "form-sequence-2",
    "login-user",
    "login-user-popup",
    "read-table",
)
"""Reading, copying and choosing, without arithmetic, drawing or a long search."""

FIRST_TRAINING_SEED = 1_000_000
"""Seeds from here on are for training, those below for evaluation and demos."""
EVALUATION_SEEDS = range(25)
"""Part of the seeds 0 … 9999, which are never used for training."""

LONGER_TASKS: tuple[str, ...] = (
    "choose-date",
    "choose-date-easy",
    "choose-date-medium",
    "choose-date-nodelay",
    "click-checkboxes-large",
    "click-menu",
    "click-tab-2-hard",
    "email-inbox",
    "email-inbox-forward",
    "email-inbox-noscroll",
    "email-inbox-reply",
    "email-inbox-star-reply",
    "enter-text-2",
    "enter-time",
    "find-greatest",
    "generate-number",
    "multi-layouts",
    "multi-orderings",
    "odd-or-even",
    "order-food",
    "phone-book",
    "read-table-2",
    "search-engine",
    "social-media",
    "social-media-all",
    "social-media-some",
    "text-transform",
    "use-autocomplete",
    "use-autocomplete-nodelay",
)
"""Tasks with several steps or a less direct choice, without arithmetic and drawing."""

TRAINING_TASKS: tuple[str, ...] = (
    *NAMED_TASKS,
    *LONGER_TASKS,
    "click-widget",
    "copy-paste",
    "email-inbox-delete",
    "email-inbox-important",
    "enter-date",
    "navigate-tree",
    "unicode-test",
    "use-spinner",
)
"""Tasks with demonstrations for training."""

PLANNING_TASKS: tuple[str, ...] = (
    "choose-date-easy",
    "choose-date-medium",
    "click-collapsible-2",
    "click-collapsible-2-nodelay",
    "click-tab-2",
    "email-inbox",
    "email-inbox-forward",
    "email-inbox-noscroll",
    "email-inbox-reply",
    "email-inbox-star-reply",
    "enter-password",
    "form-sequence-2",
    "generate-number",
    "login-user",
    "login-user-popup",
    "multi-layouts",
    "multi-orderings",
    "odd-or-even",
    "order-food",
    "read-table-2",
    "search-engine",
    "social-media-all",
    "social-media-some",
    "use-autocomplete",
    "use-autocomplete-nodelay",
)
"""Tasks of `NAMED_TASKS` and `LONGER_TASKS` for which the solver needs three to six steps (median of seeds 0 to 2), for
measuring plans."""
