"""Implements the few `func:` helpers of task files. Text of task files is never interpreted."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, urlsplit

from envs.browser.tabs import OpenTab
from envs.suites.webarena.evaluators.evidence import Evidence
from envs.suites.webarena.pages import CheckBroken
from envs.suites.webarena.task import Call

LAST_URL = "__last_url__"

# The role of the member `account` in GitLab's list of a project's members; '' if there is none.
_MEMBER_ROLE = """account => {
  const names = [...document.querySelectorAll("td[data-label='Account'] span.gl-avatar-labeled-sublabel")];
  const row = names.findIndex(name => name.outerText.trim() === '@' + account);
  const role = row < 0 ? null : document.querySelectorAll('td.col-max-role span')[row];
  return role ? role.outerText : '';
}"""


async def address_of(call: Call, evidence: Evidence) -> str:
    """The address that a helper returns. Raises CheckBroken, BadInput."""
    if call.name == "reddit_get_post_url":
        return post_url(call.argument.replace(LAST_URL, evidence.url))
    return await _latest_order(evidence)


async def content_of(call: Call, tab: OpenTab, evidence: Evidence) -> str:
    """The text that a helper returns. Raises CheckBroken, BadInput."""
    if call.name == "gitlab_get_project_memeber_role":
        return await evidence.pages.call(tab, _MEMBER_ROLE, call.argument)
    return await _latest_review(call, evidence)


def post_url(url: str) -> str:
    """The address of the post to which *url* belongs (also for a comment or edit form); *url* if there is none."""
    parts = urlsplit(url)
    segments = parts.path.split("/")
    if len(segments) < 4 or segments[1] != "f" or not segments[3]:
        return url
    return f"{parts.scheme}://{parts.netloc}/f/{segments[2]}/{segments[3]}/"


async def _latest_order(evidence: Evidence) -> str:
    shop = evidence.sites.fill("__SHOPPING__")
    newest = "searchCriteria[sortOrders][0][field]=created_at&searchCriteria[sortOrders][0][direction]=DESC"
    url = f"{shop}/rest/V1/orders?{newest}&searchCriteria[pageSize]=1"
    answer = await evidence.pages.fetch_json("GET", url, headers=await _bearer(shop, evidence))
    try:
        number = int(answer["items"][0]["increment_id"])
    except (LookupError, TypeError, ValueError) as error:
        raise CheckBroken(f"{shop} names no latest order") from error
    return f"{shop}/sales/order/view/order_id/{number}/"


async def _latest_review(call: Call, evidence: Evidence) -> str:
    shop = evidence.sites.fill("__SHOPPING__")
    url = f"{shop}/rest/V1/products/{quote(call.argument, safe='')}/reviews"
    reviews: Any = await evidence.pages.fetch_json("GET", url, headers=await _bearer(shop, evidence))
    if not reviews:
        return ""
    try:
        latest = reviews[-1]
        if call.name == "shopping_get_sku_latest_review_author":
            return str(latest["nickname"])
        return str(next(rating["percent"] for rating in latest["ratings"] if rating["rating_name"] == "Rating"))
    except (LookupError, TypeError, StopIteration) as error:
        raise CheckBroken(f"{url} gave a review without author or rating") from error


async def _bearer(shop: str, evidence: Evidence) -> dict[str, str]:
    login = {"username": evidence.admin.username, "password": evidence.admin.password}
    token = await evidence.pages.fetch_json("POST", f"{shop}/rest/default/V1/integration/admin/token", data=login)
    return {"Authorization": f"Bearer {token}"}
