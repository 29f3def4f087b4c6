"""Oscar's dashboard tables without a link that causes a server error."""

from __future__ import annotations

from typing import Any, cast

from oscar.apps.dashboard import tables


class DashboardTable(tables.DashboardTable):
    """A dashboard table whose checkbox column is not sortable."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        columns: dict[str, Any] = cast(Any, self).base_columns  # set by the metaclass
        if "checkbox" in columns:
            columns["checkbox"].orderable = False
        super().__init__(*args, **kwargs)
