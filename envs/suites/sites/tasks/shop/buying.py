"""Shop tasks that fill a basket, and impossible purchases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from random import Random

from envs.suites.sites.answers import Refusal
from envs.suites.sites.changes import Inserted
from envs.suites.sites.evidence import PagePattern
from envs.suites.sites.page_driver import PageDriver
from envs.suites.sites.tasks.shop.shared import (
    CATALOGUE,
    MOST,
    VISIT,
    open_product,
    product_page,
    products,
    reading_milestones,
    searched,
)
from envs.suites.sites.templates import (
    Goal,
    GoldenStates,
    Milestones,
    Outcome,
    Params,
    Template,
    all_of,
    any_of,
    changed,
    sent,
    visited,
)

BASKET = PagePattern("shop", r"/basket/")


def in_basket(p_product: int, quantity: int) -> Inserted:
    return Inserted("basket_line", {"product_id": p_product, "quantity": quantity})


@dataclass(frozen=True)
class BasketParams(Params):
    product: int
    title: str
    quantity: int


class AddToBasket(Template[BasketParams]):
    name = "shop-add-to-basket"
    sites = ("shop",)
    category = "shop"
    kind = "content"
    difficulty = "medium"
    wordings = (
        'Put {quantity} of "{title}" into my basket. Do not check out.',
        'I want {quantity} × "{title}" in the shopping basket; leave it at that.',
        'Fill my basket with {quantity} pieces of "{title}", without ordering yet.',
    )

    def candidates(self, golden: GoldenStates, rng: Random) -> Sequence[BasketParams]:
        return [BasketParams(item.id, item.title, rng.randint(2, 6)) for item in products(golden) if item.stock >= 6]

    def milestones(self, p: BasketParams) -> Milestones:
        line = changed("shop", "basket_line", product_id=p.product)
        return (
            Goal("The catalogue is searched, or a category is open", visited(CATALOGUE)),
            Goal(f'"{p.title}" is found', any_of(searched(p.title), visited(product_page(p.product)), line)),
            Goal(f'"{p.title}" is in the basket', line),
            Goal(
                f"The basket holds {p.quantity} of it",
                changed("shop", "basket_line", product_id=p.product, quantity=p.quantity),
            ),
        )

    def outcome(self, p: BasketParams) -> Outcome:
        return Outcome(changes={"shop": (in_basket(p.product, p.quantity),)}, allowed=VISIT)

    async def solve(self, driver: PageDriver, p: BasketParams) -> None:
        await open_product(driver, p.title)
        await driver.click("button", "Add to cart")
        await driver.click("link", "View cart")
        await driver.type("spinbutton", "", str(p.quantity))
        await driver.click("button", "Update")


@dataclass(frozen=True)
class TwoParams(Params):
    first: int
    first_title: str
    first_quantity: int
    second: int
    second_title: str
    second_quantity: int


class TwoInBasket(Template[TwoParams]):
    name = "shop-two-in-basket"
    sites = ("shop",)
    category = "shop"
    kind = "content"
    difficulty = "hard"
    wordings = (
        'Put {first_quantity} of "{first_title}" and {second_quantity} of "{second_title}" into my basket, '
        "but do not check out.",
        'My basket should hold {first_quantity} × "{first_title}" and {second_quantity} × "{second_title}". '
        "Do not order anything.",
    )

    def candidates(self, golden: GoldenStates, rng: Random) -> Sequence[TwoParams]:
        stocked = [item for item in products(golden) if item.stock >= 6]
        pairs = [rng.sample(stocked, 2) for _ in range(150)]
        return [
            TwoParams(a.id, a.title, rng.randint(2, 5), b.id, b.title, rng.randint(2, 5)) for a, b in pairs
        ]  # fmt: skip

    def milestones(self, p: TwoParams) -> Milestones:
        first, second = (changed("shop", "basket_line", product_id=key) for key in (p.first, p.second))
        counted = (
            changed("shop", "basket_line", product_id=p.first, quantity=p.first_quantity),
            changed("shop", "basket_line", product_id=p.second, quantity=p.second_quantity),
        )
        return (
            Goal("The catalogue is searched, or a category is open", visited(CATALOGUE)),
            Goal("One of the two products is in the basket", any_of(first, second)),
            Goal("Both products are in the basket", all_of(first, second)),
            Goal("Both products are in the basket in the right quantities", all_of(*counted)),
        )

    def outcome(self, p: TwoParams) -> Outcome:
        lines = (in_basket(p.first, p.first_quantity), in_basket(p.second, p.second_quantity))
        return Outcome(changes={"shop": lines}, allowed=VISIT)

    async def solve(self, driver: PageDriver, p: TwoParams) -> None:
        await open_product(driver, p.first_title)
        await driver.click("button", "Add to cart")
        await open_product(driver, p.second_title)
        await driver.click("button", "Add to cart")
        await driver.click("link", "View cart")
        await driver.type("spinbutton", "", str(p.first_quantity))
        await driver.type("spinbutton", "", str(p.second_quantity), nth=1)
        await driver.click("button", "Update")


@dataclass(frozen=True)
class SoldOutParams(Params):
    product: int
    shelf: int
    title: str


class SoldOut(Template[SoldOutParams]):
    name = "shop-sold-out"
    sites = ("shop",)
    category = "shop"
    kind = "impossible"
    difficulty = "easy"
    wordings = (
        'Put one "{title}" into my basket. If that cannot be done, leave everything as it is and tell me why.',
        'Add "{title}" to my shopping basket, or answer N/A with the reason if it is not possible.',
    )

    def candidates(self, golden: GoldenStates, rng: Random) -> Sequence[SoldOutParams]:
        return [SoldOutParams(item.id, item.shelf_id, item.title) for item in products(golden) if item.stock == 0]

    def milestones(self, p: SoldOutParams) -> Milestones:
        return reading_milestones(p.title, p.shelf, product_page(p.product))

    def outcome(self, p: SoldOutParams) -> Outcome:
        return Outcome(answer=_sold_out(p), allowed=VISIT)

    async def solve(self, driver: PageDriver, p: SoldOutParams) -> str:
        await open_product(driver, p.title)
        return _sold_out(p).truth()


def _sold_out(p: SoldOutParams) -> Refusal:
    mentions = (
        r"(out of|no|not in|isn't in|is not in) stock",
        r"sold.?out",
        r"(un|not )available",
        r"stock is (0|zero)",
    )
    return Refusal(f'"{p.title}" is out of stock', mentions)


@dataclass(frozen=True)
class TooManyParams(Params):
    product: int
    shelf: int
    title: str
    stock: int
    quantity: int


class TooMany(Template[TooManyParams]):
    name = "shop-too-many"
    sites = ("shop",)
    category = "shop"
    kind = "impossible"
    difficulty = "easy"
    wordings = (
        'I need exactly {quantity} of "{title}" in my basket, no fewer. If the shop cannot do that, add nothing and '
        "tell me why.",
        'Put {quantity} of "{title}" into my basket. Should there not be enough of them, put none in and answer N/A '
        "with the reason.",
    )

    def candidates(self, golden: GoldenStates, rng: Random) -> Sequence[TooManyParams]:
        few = [item for item in products(golden) if 0 < item.stock < 30]
        instances = [
            TooManyParams(item.id, item.shelf_id, item.title, item.stock, item.stock + more)
            for item, more in product(few, (1, 3, 8))
        ]
        return rng.sample(instances, min(MOST, len(instances)))

    def milestones(self, p: TooManyParams) -> Milestones:
        return reading_milestones(p.title, p.shelf, product_page(p.product))

    def outcome(self, p: TooManyParams) -> Outcome:
        return Outcome(answer=self._refusal(p), allowed=VISIT)

    async def solve(self, driver: PageDriver, p: TooManyParams) -> str:
        await open_product(driver, p.title)
        return self._refusal(p).truth()

    @staticmethod
    def _refusal(p: TooManyParams) -> Refusal:
        mentions = (rf"\b{p.stock}\b", r"not enough|insufficient|too few|fewer|exceeds")
        return Refusal(f"only {p.stock} are in stock", mentions)


@dataclass(frozen=True)
class DeadCouponParams(Params):
    product: int
    title: str
    coupon: str
    reason: str


class DeadCoupon(Template[DeadCouponParams]):
    name = "shop-dead-coupon"
    sites = ("shop",)
    category = "shop"
    kind = "impossible"
    difficulty = "medium"
    wordings = (
        'Put one "{title}" into my basket and redeem the coupon {coupon} on it. If the coupon does not work, leave the '
        "basket as it is and tell me why.",
        'I have a coupon, {coupon}. Add one "{title}" to my basket and apply it; answer N/A with the reason if the '
        "shop does not take it.",
    )

    def candidates(self, golden: GoldenStates, rng: Random) -> Sequence[DeadCouponParams]:
        codes = ("WINTER30", "MIDSUMMER12", "HARBOUR50", "FRIENDS5")
        reasons = {"WINTER30": "it has expired", "MIDSUMMER12": "it is not valid yet"}
        pairs = [(item, code) for item, code in product(products(golden), codes) if item.stock]
        return [
            DeadCouponParams(item.id, item.title, code, reasons.get(code, "there is no such coupon"))
            for item, code in rng.sample(pairs, min(MOST, len(pairs)))
        ]

    def milestones(self, p: DeadCouponParams) -> Milestones:
        line = changed("shop", "basket_line", product_id=p.product)
        return (
            Goal(f'"{p.title}" is found', any_of(searched(p.title), visited(product_page(p.product)), line)),
            Goal(f'"{p.title}" is in the basket', line),
            Goal("The basket is open", all_of(line, visited(BASKET))),
            Goal("The coupon has been tried", sent(PagePattern("shop", r"/basket/vouchers/add/"))),
        )

    def outcome(self, p: DeadCouponParams) -> Outcome:
        return Outcome(answer=self._refusal(p), changes={"shop": (in_basket(p.product, 1),)}, allowed=VISIT)

    async def solve(self, driver: PageDriver, p: DeadCouponParams) -> str:
        await open_product(driver, p.title)
        await driver.click("button", "Add to cart")
        await driver.click("link", "View cart")
        await driver.click("link", "I have a coupon code...")
        await driver.type("textbox", "Code", p.coupon)
        await driver.click("button", "Add coupon")
        return self._refusal(p).truth()

    @staticmethod
    def _refusal(p: DeadCouponParams) -> Refusal:
        mentions = (r"expired|inactive|not (yet )?(active|valid|recogni[sz]ed|exist)|no (such )?(coupon|code|voucher)",)
        mentions += (
            r"invalid|unknown|no longer|has ended|not started|did not|does not|doesn't|not found|not accepted",
        )
        return Refusal(f"the coupon {p.coupon} does not work: {p.reason}", mentions)


@dataclass(frozen=True)
class AbroadParams(Params):
    product: int
    title: str
    country: str
    city: str


class ShipAbroad(Template[AbroadParams]):
    """Impossible: the shop has these countries, but its checkout does not offer them."""

    name = "shop-ship-abroad"
    sites = ("shop",)
    category = "shop"
    kind = "impossible"
    difficulty = "medium"
    wordings = (
        'Order one "{title}" and have it delivered to my cousin in {city}, {country}. If that cannot be done, do not '
        "order and tell me why.",
        'Buy "{title}" for delivery to {city} in {country}; answer N/A with the reason, without ordering, if the shop '
        "cannot do that.",
    )
    places = (
        ("Japan", "Osaka"),
        ("Spain", "Seville"),
        ("Canada", "Halifax"),
        ("Iceland", "Akureyri"),
        ("Italy", "Lucca"),
    )

    def candidates(self, golden: GoldenStates, rng: Random) -> Sequence[AbroadParams]:
        pairs = [(item, place) for item, place in product(products(golden), self.places) if item.stock]
        return [AbroadParams(item.id, item.title, *place) for item, place in rng.sample(pairs, min(MOST, len(pairs)))]

    def milestones(self, p: AbroadParams) -> Milestones:
        line = changed("shop", "basket_line", product_id=p.product)
        return (
            Goal("The catalogue is searched, or a category is open", visited(CATALOGUE)),
            Goal(f'"{p.title}" is found', any_of(searched(p.title), visited(product_page(p.product)), line)),
            Goal(f'"{p.title}" is in the basket', line),
            Goal("The checkout says where it delivers", visited(PagePattern("shop", r"/checkout/shipping-address/"))),
        )

    def outcome(self, p: AbroadParams) -> Outcome:
        return Outcome(answer=self._refusal(p), allowed={"shop": (*VISIT["shop"], in_basket(p.product, 1))})

    async def solve(self, driver: PageDriver, p: AbroadParams) -> str:
        await open_product(driver, p.title)
        await driver.click("button", "Add to cart")
        await driver.click("link", "Checkout now")
        return self._refusal(p).truth()

    @staticmethod
    def _refusal(p: AbroadParams) -> Refusal:
        return Refusal(
            f"the shop does not deliver to {p.country}", (rf"{p.country.lower()}|country|deliver|ship|abroad",)
        )


TEMPLATES = (AddToBasket(), TwoInBasket(), SoldOut(), TooMany(), DeadCoupon(), ShipAbroad())
