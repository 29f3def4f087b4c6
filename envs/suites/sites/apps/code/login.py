"""A login form for Trac, which by itself relies on the web server for passwords."""

from __future__ import annotations

import hashlib
import hmac
from typing import Any

from pkg_resources import resource_filename
from trac.core import implements
from trac.web.auth import LoginModule
from trac.web.chrome import ITemplateProvider, add_warning

PASSWORD = "password_sha256"
"""Name of the session attribute with an account's password hash."""


def hashed(user: str, password: str) -> str:
    """The password hash, salted with the user name. The accounts are public, so this is sufficient."""
    return hashlib.sha256(f"{user}:{password}".encode()).hexdigest()


class FormLogin(LoginModule):
    """Replaces Trac's login module and keeps its cookies and logout.

    Cookies are never purged, since golden logins do not expire."""

    implements(ITemplateProvider)

    env: Any

    def process_request(self, req: Any) -> Any:
        if not req.path_info.startswith("/login"):
            return super().process_request(req)
        if req.is_authenticated:
            self._redirect_back(req)
        if req.method == "POST" and "user" in req.args:
            user = req.args.get("user", "").strip()
            if self._is_right(user, req.args.get("password", "")):
                req.environ["REMOTE_USER"] = user
                self._do_login(req)
                self._redirect_back(req)
            add_warning(req, "Invalid user name or password.")
        return "login.html", {"referer": self._referer(req) or ""}, {}

    def _is_right(self, user: str, password: str) -> bool:
        rows = self.env.db_query(
            "SELECT value FROM session_attribute WHERE sid=%s AND authenticated=1 AND name=%s", (user, PASSWORD)
        )
        return bool(rows) and hmac.compare_digest(rows[0][0], hashed(user, password))

    def get_htdocs_dirs(self) -> list[tuple[str, str]]:
        return []

    def get_templates_dirs(self) -> list[str]:
        return [resource_filename("envs.suites.sites.apps.code", "templates")]
