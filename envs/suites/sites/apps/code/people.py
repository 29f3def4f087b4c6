"""The people of the project: accounts, commit authors and ticket reporters."""

from __future__ import annotations

from typing import NamedTuple


class Person(NamedTuple):
    user: str
    name: str

    @property
    def email(self) -> str:
        return f"{self.user}@tidemark.example"

    @property
    def password(self) -> str:
        """The account's password. It is public."""
        return f"{self.user}-tides"


DEVELOPERS = (
    Person("noor", "Noor Haddad"),
    Person("tomasz", "Tomasz Zielinski"),
    Person("priya", "Priya Raman"),
    Person("lucas", "Lucas Moreau"),
    Person("hanna", "Hanna Virtanen"),
    Person("kofi", "Kofi Mensah"),
    Person("mei", "Mei Tanaka"),
    Person("diego", "Diego Alvarez"),
)
ADMIN = Person("admin", "Ilse Brandt")
REPORTERS = (
    Person("robin", "Robin Castle"),
    Person("ayse", "Ayse Demir"),
    Person("bjorn", "Bjorn Lindqvist"),
    Person("olivia", "Olivia Hart"),
)
EVERYBODY = (*DEVELOPERS, ADMIN, *REPORTERS)
PERSONAS = {"developer": DEVELOPERS[0], "admin": ADMIN}
"""The accounts of the personas."""

COMPONENTS = {
    "alerts": "kofi",
    "cache": "kofi",
    "cli": "diego",
    "datum": "tomasz",
    "documentation": "noor",
    "harmonics": "priya",
    "packaging": "lucas",
    "plotting": "hanna",
    "readers": "mei",
    "stations": "tomasz",
}
"""Components and the owners of their tickets."""
