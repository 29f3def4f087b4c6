"""Pages of a site are found by following its links; one of each form."""

from __future__ import annotations

from tests.conftest import Site
from training.grounding.site_pages import find_pages


async def test_one_page_of_each_form_is_found(site: Site) -> None:
    links = ("/catalogue/oak-table_1/", "/catalogue/lamp_2/", "/search?q=a&amp;page=1", "/search?q=b&page=2")
    others = ("/logout/", "/static/site.css", "https://elsewhere.test/", "/missing/", "mailto:a@b.c", "#top")
    site.pages["/"] = "".join(f'<a class="x" href="{link}">go</a>' for link in (*links, *others))
    site.pages["/catalogue/oak-table_1/"] = site.pages["/catalogue/lamp_2/"] = '<a href="../">up</a>'
    site.pages["/search"] = "<a href='/'>home</a>"
    found = await find_pages("shop", ("127.0.0.1", site.port))
    assert [each.id for each in found] == ["sites/shop/", "sites/shop/catalogue/*/", "sites/shop/search?page&q"]
    assert found[1].page == "http://shop.test/catalogue/oak-table_1/"
    assert "/logout/" not in site.requests and "/static/site.css" not in site.requests
