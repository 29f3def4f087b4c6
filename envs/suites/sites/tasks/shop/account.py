"""Shop tasks in a customer's account: addresses, wish lists, reviews, the profile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from random import Random

from envs.suites.sites.changes import Deleted, Inserted, Updated
from envs.suites.sites.evidence import PagePattern
from envs.suites.sites.page_driver import PageDriver
from envs.suites.sites.tasks.shop.shared import (
    ACCOUNT,
    CATALOGUE,
    CUSTOMER,
    MOST,
    VISIT,
    open_product,
    product_page,
    products,
    searched,
)
from envs.suites.sites.templates import (
    Goal,
    GoldenStates,
    Milestones,
    Outcome,
    Params,
    Template,
    any_of,
    changed,
    deleted,
    sent,
    visited,
)

ADDRESSES = PagePattern("shop", r"/accounts/addresses/")
WISH_LISTS = PagePattern("shop", r"/accounts/wishlists/")


@dataclass(frozen=True)
class MovedParams(Params):
    address: int
    person: str
    old_street: str
    street: str
    city: str
    postcode: str


STREETS = ("Harbour View", "Cooper's Hill", "Elm Grove", "Victoria Terrace", "Bridge Street", "Priory Road")
TOWNS = (
    ("Bath", "BA1 5LN"),
    ("Stirling", "FK8 1ED"),
    ("Whitby", "YO21 3PT"),
    ("Ludlow", "SY8 1AZ"),
    ("Ely", "CB7 4DG"),
)


class ChangeAddress(Template[MovedParams]):
    name = "shop-change-address"
    sites = ("shop",)
    category = "shop"
    kind = "configuration"
    difficulty = "medium"
    wordings = (
        "{person} has moved to {street}, {city}, {postcode}. Correct the entry in my address book.",
        "Change the address of {person} in my address book: it is now {street} in {city}, postcode {postcode}.",
    )

    def candidates(self, golden: GoldenStates, rng: Random) -> Sequence[MovedParams]:
        rows = golden.database("shop").rows(
            "SELECT id, first_name || ' ' || last_name, line1 FROM address_useraddress WHERE user_id = ? ORDER BY id",
            CUSTOMER,
        )
        places = list(product(rows, STREETS, TOWNS))
        return [
            MovedParams(key, person, old, f"{rng.randint(2, 90)} {street}", *town)
            for (key, person, old), street, town in places
        ]

    def milestones(self, p: MovedParams) -> Milestones:
        form = PagePattern("shop", rf"/accounts/addresses/{p.address}/")
        table = "address_useraddress"
        return (
            Goal("The account is open", visited(ACCOUNT)),
            Goal("The address book is open", visited(ADDRESSES)),
            Goal(f"The entry of {p.person} is open for editing", visited(form)),
            Goal(
                "The new address is stored", changed("shop", table, id=p.address, line1=p.street, postcode=p.postcode)
            ),
        )

    def outcome(self, p: MovedParams) -> Outcome:
        to = {"line1": p.street, "line4": p.city, "postcode": p.postcode}
        entry = Updated("address_useraddress", {"id": p.address}, to, allowed=("hash", "search_text"))
        return Outcome(changes={"shop": (entry,)}, allowed=VISIT)

    async def solve(self, driver: PageDriver, p: MovedParams) -> None:
        await driver.click("link", "Account")
        await driver.click("link", "Address Book")
        await driver.click("link", "Edit", row=p.old_street)
        await driver.type("textbox", "First line of address", p.street)
        await driver.type("textbox", "City", p.city)
        await driver.type("textbox", "Post/Zip-code", p.postcode)
        await driver.click("button", "Save")


@dataclass(frozen=True)
class NewAddressParams(Params):
    first_name: str
    last_name: str
    street: str
    city: str
    postcode: str
    country: str
    code: str


PEOPLE = (
    ("Agnes", "Holm"),
    ("Ruben", "Castell"),
    ("Philippa", "Dunn"),
    ("Edgar", "Moss"),
    ("Katya", "Lindgren"),
    ("Owen", "Prideaux"),
)
ABROAD = (
    ("12 Rue des Lilas", "Lyon", "69003", "France", "FR"),
    ("7 Keizersgracht", "Amsterdam", "1015 CJ", "Netherlands", "NL"),
    ("31 Lindenallee", "Hamburg", "20259", "Germany", "DE"),
    ("4 Storgata", "Oslo", "0182", "Norway", "NO"),
    ("88 Victoria Terrace", "Stirling", "FK8 1ED", "United Kingdom", "GB"),
    ("15 Elm Grove", "Bath", "BA1 5LN", "United Kingdom", "GB"),
)


class AddAddress(Template[NewAddressParams]):
    name = "shop-add-address"
    sites = ("shop",)
    category = "shop"
    kind = "configuration"
    difficulty = "hard"
    wordings = (
        "Add a new address to my address book: {first_name} {last_name}, {street}, {city}, {postcode}, {country}.",
        "I need {first_name} {last_name} in my address book, living at {street} in {city} ({postcode}), {country}.",
    )

    def candidates(self, golden: GoldenStates, rng: Random) -> Sequence[NewAddressParams]:
        return [NewAddressParams(*person, *place) for person, place in product(PEOPLE, ABROAD)]

    def milestones(self, p: NewAddressParams) -> Milestones:
        form = PagePattern("shop", r"/accounts/addresses/add/")
        table = "address_useraddress"
        return (
            Goal("The account is open", visited(ACCOUNT)),
            Goal("The address book is open", visited(ADDRESSES)),
            Goal("The form for a new address is open", visited(form)),
            Goal("The address is stored", changed("shop", table, last_name=p.last_name, postcode=p.postcode)),
        )

    def outcome(self, p: NewAddressParams) -> Outcome:
        entry = Inserted(
            "address_useraddress",
            {
                "user_id": CUSTOMER,
                "first_name": p.first_name,
                "last_name": p.last_name,
                "line1": p.street,
                "line2": "",
                "line3": "",
                "line4": p.city,
                "postcode": p.postcode,
                "country_id": p.code,
            },
        )
        return Outcome(changes={"shop": (entry,)}, allowed=VISIT)

    async def solve(self, driver: PageDriver, p: NewAddressParams) -> None:
        await driver.click("link", "Account")
        await driver.click("link", "Address Book")
        await driver.click("link", "Add a new address")
        await driver.type("textbox", "First name", p.first_name)
        await driver.type("textbox", "Last name", p.last_name)
        await driver.type("textbox", "First line of address", p.street)
        await driver.type("textbox", "City", p.city)
        await driver.type("textbox", "Post/Zip-code", p.postcode)
        await driver.select("combobox", "Country", p.country)
        await driver.click("button", "Save")


@dataclass(frozen=True)
class NameParams(Params):
    surname: str


class ChangeSurname(Template[NameParams]):
    name = "shop-change-surname"
    sites = ("shop",)
    category = "shop"
    kind = "configuration"
    difficulty = "easy"
    wordings = (
        "I have married: change the last name in my profile to {surname}.",
        "Please correct my surname in my shop profile; it is {surname} now.",
    )
    surnames = (
        *("Hawthorne", "Winterbourne", "Salazar", "Oakley", "Montague", "Devereux"),
        *("Lockhart", "Ferreira", "Nightingale", "Rosenthal", "Abara", "Sinclair"),
    )

    def candidates(self, golden: GoldenStates, rng: Random) -> Sequence[NameParams]:
        return [NameParams(name) for name in self.surnames]

    def milestones(self, p: NameParams) -> Milestones:
        form = PagePattern("shop", r"/accounts/profile/edit/")
        return (
            Goal("The account is open", visited(ACCOUNT)),
            Goal("The form of the profile is open", visited(form)),
            Goal("The form has been sent", sent(form)),
            Goal("The new name is stored", changed("shop", "auth_user", id=CUSTOMER, last_name=p.surname)),
        )

    def outcome(self, p: NameParams) -> Outcome:
        return Outcome(
            changes={"shop": (Updated("auth_user", {"id": CUSTOMER}, {"last_name": p.surname}),)}, allowed=VISIT
        )

    async def solve(self, driver: PageDriver, p: NameParams) -> None:
        await driver.click("link", "Account")
        await driver.click("link", "Edit profile")
        await driver.type("textbox", "Last name", p.surname)
        await driver.click("button", "Save")


@dataclass(frozen=True)
class WishParams(Params):
    product: int
    title: str
    shelf: int
    wish_list: str
    list_id: int


class AddToWishList(Template[WishParams]):
    name = "shop-add-to-wish-list"
    sites = ("shop",)
    category = "shop"
    kind = "content"
    difficulty = "medium"
    wordings = (
        'Put "{title}" on my wish list "{wish_list}".',
        'Save "{title}" for later on the wish list called "{wish_list}".',
    )

    def candidates(self, golden: GoldenStates, rng: Random) -> Sequence[WishParams]:
        shop = golden.database("shop")
        lists = shop.rows("SELECT id, name FROM wishlists_wishlist WHERE owner_id = ? ORDER BY id", CUSTOMER)
        taken = set(shop.rows("SELECT wishlist_id, product_id FROM wishlists_line"))
        wishes = [
            WishParams(item.id, item.title, item.shelf_id, name, key)
            for item, (key, name) in product(products(golden), lists)
            if (key, item.id) not in taken
        ]
        return rng.sample(wishes, min(MOST, len(wishes)))

    def milestones(self, p: WishParams) -> Milestones:
        page = visited(product_page(p.product))
        return (
            Goal("The catalogue is searched, or a category is open", visited(CATALOGUE)),
            Goal(f'"{p.title}" is found', any_of(searched(p.title), page)),
            Goal(f'The page of "{p.title}" is open', page),
            Goal(
                f'It is on "{p.wish_list}"',
                changed("shop", "wishlists_line", wishlist_id=p.list_id, product_id=p.product),
            ),
        )

    def outcome(self, p: WishParams) -> Outcome:
        line = Inserted("wishlists_line", {"wishlist_id": p.list_id, "product_id": p.product, "quantity": 1})
        return Outcome(changes={"shop": (line,)}, allowed=VISIT)

    async def solve(self, driver: PageDriver, p: WishParams) -> None:
        await open_product(driver, p.title)
        await driver.click("link", "Add to wish list")
        await driver.click("link", f"Add to '{p.wish_list}' wish list")


@dataclass(frozen=True)
class UnwishParams(Params):
    line: int
    title: str
    wish_list: str
    key: str


class RemoveFromWishList(Template[UnwishParams]):
    name = "shop-remove-from-wish-list"
    sites = ("shop",)
    category = "shop"
    kind = "content"
    difficulty = "medium"
    wordings = (
        'Take "{title}" off my wish list "{wish_list}".',
        'I no longer want "{title}": remove it from the wish list "{wish_list}".',
    )

    def candidates(self, golden: GoldenStates, rng: Random) -> Sequence[UnwishParams]:
        rows = golden.database("shop").rows(
            "SELECT l.id, l.title, w.name, w.key FROM wishlists_line l"
            " JOIN wishlists_wishlist w ON w.id = l.wishlist_id WHERE w.owner_id = ? ORDER BY l.id",
            CUSTOMER,
        )
        return [UnwishParams(*row) for row in rows]

    def milestones(self, p: UnwishParams) -> Milestones:
        return (
            Goal("The account is open", visited(ACCOUNT)),
            Goal("The wish lists are open", visited(WISH_LISTS)),
            Goal(f'The list "{p.wish_list}" is open', visited(PagePattern("shop", rf"/accounts/wishlists/{p.key}/"))),
            Goal(f'"{p.title}" is gone from the wish list', deleted("shop", "wishlists_line", id=p.line)),
        )

    def outcome(self, p: UnwishParams) -> Outcome:
        return Outcome(changes={"shop": (Deleted("wishlists_line", {"id": p.line}),)}, allowed=VISIT)

    async def solve(self, driver: PageDriver, p: UnwishParams) -> None:
        await driver.click("link", "Account")
        await driver.click("link", "Wish Lists")
        await driver.click("link", p.wish_list)
        await driver.click("button", "", row=p.title)
        await driver.click("link", "Remove")
        await driver.click("button", "Remove")


@dataclass(frozen=True)
class NewListParams(Params):
    title: str
    visibility: str
    option: str
    who: str


class CreateWishList(Template[NewListParams]):
    name = "shop-create-wish-list"
    sites = ("shop",)
    category = "shop"
    kind = "configuration"
    difficulty = "medium"
    wordings = (
        'Make a new, empty wish list called "{title}" that {who} can see.',
        'I want another wish list, named "{title}". Set it up so that {who} can see it; put nothing on it yet.',
    )
    titles = (
        *("Allotment", "Wedding table", "Rainy days", "House warming"),
        *("For Grandpa", "Reading corner", "Studio", "Picnic"),
    )
    kinds = (
        ("Private", "Private - Only the owner can see the wish list", "nobody but me"),
        ("Public", "Public - Everybody can see the wish list", "everybody"),
    )

    def candidates(self, golden: GoldenStates, rng: Random) -> Sequence[NewListParams]:
        return [NewListParams(title, *kind) for title, kind in product(self.titles, self.kinds)]

    def milestones(self, p: NewListParams) -> Milestones:
        return (
            Goal("The account is open", visited(ACCOUNT)),
            Goal("The wish lists are open", visited(WISH_LISTS)),
            Goal("The form for a new list is open", visited(PagePattern("shop", r"/accounts/wishlists/create/"))),
            Goal("The list exists", changed("shop", "wishlists_wishlist", name=p.title, visibility=p.visibility)),
        )

    def outcome(self, p: NewListParams) -> Outcome:
        values = {"owner_id": CUSTOMER, "name": p.title, "visibility": p.visibility}
        return Outcome(changes={"shop": (Inserted("wishlists_wishlist", values),)}, allowed=VISIT)

    async def solve(self, driver: PageDriver, p: NewListParams) -> None:
        await driver.click("link", "Account")
        await driver.click("link", "Wish Lists")
        await driver.click("link", "Create a new wish list")
        await driver.type("textbox", "Name", p.title)
        await driver.select("combobox", "Visibility", p.option)
        await driver.click("button", "Save")


@dataclass(frozen=True)
class ReviewParams(Params):
    product: int
    title: str
    stars: int
    headline: str
    body: str


class WriteReview(Template[ReviewParams]):
    name = "shop-write-review"
    sites = ("shop",)
    category = "shop"
    kind = "content"
    difficulty = "medium"
    wordings = (
        'Review "{title}" for me: {stars} out of 5 stars, title "{headline}", text "{body}"',
        'Write a review of "{title}". Give it {stars} of 5 stars. Headline: "{headline}". Text: "{body}"',
    )
    reviews = (
        (1, "A waste of money", "It came broken and was not worth mending."),
        (2, "Expected better", "It does what it must, and nothing beyond that."),
        (3, "Quite ordinary", "Neither good nor bad; I might buy another brand next time."),
        (4, "Would buy again", "Sturdy and handsome, if a little dear."),
        (5, "Simply the best", "We use it every single day and love it."),
    )

    def candidates(self, golden: GoldenStates, rng: Random) -> Sequence[ReviewParams]:
        reviewed = {
            key for (key,) in golden.database("shop").rows(
                "SELECT product_id FROM reviews_productreview WHERE user_id = ?", CUSTOMER
            )
        }  # fmt: skip
        rows = [item for item in products(golden) if item.id not in reviewed]
        return [ReviewParams(item.id, item.title, *rng.choice(self.reviews)) for item in rows]

    def milestones(self, p: ReviewParams) -> Milestones:
        form = visited(PagePattern("shop", product_page(p.product).path + "reviews/add/"))
        table = "reviews_productreview"
        return (
            Goal("The catalogue is searched, or a category is open", visited(CATALOGUE)),
            Goal(f'The page of "{p.title}" is open', any_of(visited(product_page(p.product)), form)),
            Goal("The form for a review is open", form),
            Goal("The review is stored", changed("shop", table, product_id=p.product, score=p.stars)),
        )

    def outcome(self, p: ReviewParams) -> Outcome:
        values = {"product_id": p.product, "user_id": CUSTOMER, "score": p.stars, "title": p.headline, "body": p.body}
        return Outcome(changes={"shop": (Inserted("reviews_productreview", values),)}, allowed=VISIT)

    async def solve(self, driver: PageDriver, p: ReviewParams) -> None:
        await open_product(driver, p.title)
        await driver.click("link", "Write a review")
        await driver.type("textbox", "Title", p.headline)
        await driver.click("clickable", "icon: star", nth=p.stars - 1)
        await driver.type("textbox", "Body", p.body)
        await driver.click("button", "Save review")


TEMPLATES = (
    ChangeAddress(),
    AddAddress(),
    ChangeSurname(),
    AddToWishList(),
    RemoveFromWishList(),
    CreateWishList(),
    WriteReview(),
)
