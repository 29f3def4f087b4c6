"""Tables of the dashboard: Oscar's, but for a link that leads to a server error."""

from __future__ import annotations

from typing import Any, cast

from oscar.apps.dashboard import tables


class DashboardTable(tables.DashboardTable):
    """The column of checkboxes does not offer to be sorted by: there is nothing to sort by."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        columns: dict[str, Any] = cast(Any, self).base_columns  # set by the metaclass
        if "checkbox" in columns:
            columns["checkbox"].orderable = False
        super().__init__(*args, **kwargs)
