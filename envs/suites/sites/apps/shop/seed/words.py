"""Word lists for the shop's people, addresses, products and reviews."""

from __future__ import annotations


def _several(text: str) -> tuple[str, ...]:
    return tuple(text.split(", "))


FIRST_NAMES = _several(
    "Nora, Tobias, Priya, Callum, Ingrid, Mateo, Saoirse, Hugo, Amara, Felix, Yasmin, Rowan, Beatrix, Omar, Linnea, "
    "Jasper, Keiko, Dexter, Marta, Idris, Petra, Silas, Zainab, Conrad, Elodie, Bram, Farida, Magnus, Thea, Ravi, "
    "Odette, Lewis, Camila, Anton, Wilma, Kofi, Greta, Emrys, Leila, Pascal, Sunniva, Dominic, Halima, Quentin, "
    "Rosalind, Tariq, Verity, Aksel, Imogen, Nikhil, Delphine, Gareth, Mireille, Stefan, Winifred, Joaquin"
)
LAST_NAMES = _several(
    "Whitfield, Ashdown, Raman, Drummond, Solberg, Vega, Kinsella, Marchetti, Okonkwo, Lindqvist, Haddad, "
    "Thackeray, Penrose, Farouk, Bergstrom, Holloway, Tanaka, Blackwood, Kowalska, Mensah, Novak, Greenwood, "
    "Siddiqui, Baumann, Laurent, Visser, Noorani, Eriksen, Papadakis, Chandra, Beaumont, Prescott, Duarte, Petrov, "
    "Sandberg, Asante, Hoffmann, Llewellyn, Karimi, Fontaine, Nygaard, Castellano, Yusuf, Abernathy, Fairweather, "
    "Rahmani, Ellsworth, Haugen, Carmichael, Deshpande, Moreau, Pritchard, Girard, Ionescu, Blenkinsop, Navarro"
)
STREETS = _several(
    "Chandler Row, Mill Lane, Orchard Street, Station Road, Ropewalk, Beacon Hill, Cathedral Close, Tanner Street, "
    "Weavers Yard, Saltmarsh Lane, Juniper Avenue, Foundry Street, Larkspur Way, Quarry Bank, Abbey Walk, Market "
    "Place"
)
CITIES = (
    ("Bristol", "BS"),
    ("York", "YO"),
    ("Norwich", "NR"),
    ("Exeter", "EX"),
    ("Leeds", "LS"),
    ("Cardiff", "CF"),
    ("Dundee", "DD"),
    ("Oxford", "OX"),
    ("Truro", "TR"),
    ("Lancaster", "LA"),
)
"""Cities with the first letters of their postcodes."""
SHIPPING_COUNTRIES = ("GB", "IE", "FR", "DE", "NL", "NO")
OTHER_COUNTRIES = ("AT", "AU", "BE", "CA", "CH", "DK", "ES", "FI", "IS", "IT", "JP", "NZ", "PT", "SE", "US")
"""Countries to which the shop does not deliver."""

REVIEW_TITLES = {
    1: ("Fell apart", "Very disappointed", "Do not bother", "Sent it straight back"),
    2: ("Not what I hoped", "Below par", "Rather flimsy", "Meh"),
    3: ("Does the job", "It is all right", "Middling", "Fine for the price"),
    4: ("Very good", "Nearly perfect", "Pleased with it", "Solid choice"),
    5: ("Could not be happier", "Superb", "Worth every penny", "A joy to use"),
}
REVIEW_BODIES = {
    1: ("It broke within a week and nobody answered my letter.", "Arrived damaged, and the replacement was no better."),
    2: ("The finish is rough and it feels cheaper than it looks.", "It works, but I would not buy it again."),
    3: ("Nothing special, though I use it most days.", "Decent, if a little smaller than in the picture."),
    4: ("Well made and quick to arrive; only the box was dented.", "I like it a lot, and so do the neighbours."),
    5: (
        "Exactly what I looked for, and it should last for years.",
        "I have already bought a second one as a gift.",
    ),
}
PRAISE = (
    "Made to be used every day and to age well.",
    "A favourite of our own staff.",
    "Checked by hand before it leaves the workshop.",
    "Comes in a plain box without plastic.",
    "A steady seller since we opened.",
    "Designed in a small studio by the sea.",
)
NOTES = (
    "Customer rang to ask about the delivery date.",
    "Please leave with the neighbour if nobody answers.",
    "Gift: do not put a price slip into the parcel.",
    "Address confirmed by phone.",
)
