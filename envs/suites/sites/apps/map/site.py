"""The map as a site: built from an OpenStreetMap extract, served without a database."""

from __future__ import annotations

import shutil
from pathlib import Path

from envs.suites.sites.apps.base import FIXED, LOGINS, WSGIApplication
from envs.suites.sites.apps.map.drawing import write_drawing
from envs.suites.sites.apps.map.extract import extract
from envs.suites.sites.apps.map.network import Network
from envs.suites.sites.apps.map.pages import Pages
from envs.suites.sites.apps.map.places import Gazetteer
from envs.suites.sites.apps.map.snapping import snapped
from envs.suites.sites.apps.map.truth import write_truth
from envs.suites.wheel_data import HELSINKI_OSM, LICENCE_FILE, NOTICE_FILE, WheelData, WheelFile, fetch

_LEAFLET = "js_lib_leaflet/static/js_lib_leaflet"
LEAFLET = WheelData(
    name="leaflet",
    package="django-js-lib-leaflet",
    version="1.9.4.1",
    files=(
        WheelFile(f"{_LEAFLET}/leaflet.js", "db49d009c841f5ca34a888c96511ae936fd9f5533e90d8b2c4d57596f4e5641a"),
        WheelFile(f"{_LEAFLET}/leaflet.css", "a7837102824184820dfa198d1ebcd109ff6d0ff9a2672a074b9a1b4d147d04c6"),
        WheelFile(
            f"{_LEAFLET}/images/layers-2x.png", "066daca850d8ffbef007af00b06eac0015728dee279c51f3cb6c716df7c42edf"
        ),
        WheelFile(f"{_LEAFLET}/images/layers.png", "1dbbe9d028e292f36fcba8f8b3a28d5e8932754fc2215b9ac69e4cdecf5107c6"),
        WheelFile(
            f"{_LEAFLET}/images/marker-icon-2x.png", "00179c4c1ee830d3a108412ae0d294f55776cfeb085c60129a39aa6fc4ae2528"
        ),
        WheelFile(
            f"{_LEAFLET}/images/marker-icon.png", "574c3a5cca85f4114085b6841596d62f00d7c892c7b03f28cbfa301deb1dc437"
        ),
        WheelFile(
            f"{_LEAFLET}/images/marker-shadow.png", "264f5c640339f042dd729062cfc04c17f8ea0f29882b538e3848ed8f10edb4da"
        ),
    ),
    licence="BSD-2-Clause",
    notice="Leaflet 1.9.4, (c) Volodymyr Agafonkin and CloudMade.",
    licence_member="django_js_lib_leaflet-1.9.4.1.dist-info/LICENSE",
)


class MapSite:
    """See `envs.suites.sites.apps.base.SiteApp`."""

    def build(self, golden: Path) -> None:
        fixed = golden / FIXED
        fixed.mkdir()
        source = fetch(HELSINKI_OSM)
        extracted = extract(source / HELSINKI_OSM.files[0].name)
        network = Network.of(extracted.ways)
        gazetteer = Gazetteer(snapped(extracted.places, network))
        print(f"map: {len(gazetteer.places)} places, {len(network.edges)} edges", flush=True)  # noqa: T201
        gazetteer.write(fixed)
        network.write(fixed)
        static = fixed / "static"
        _put_leaflet(static / "leaflet")
        write_drawing(extracted, static)
        shutil.copyfile(source / NOTICE_FILE, fixed / NOTICE_FILE)
        write_truth(gazetteer, network, fixed)
        (golden / LOGINS).write_text("{}", encoding="utf-8")

    def application(self, copy: Path) -> WSGIApplication:
        fixed = copy / FIXED
        return Pages(Gazetteer.read(fixed), Network.read(fixed), fixed / "static")

    def clear_caches(self) -> None:
        """Does nothing: the map has no changing state."""


def _put_leaflet(folder: Path) -> None:
    """Copies Leaflet's files into the layout that its stylesheet expects."""
    source = fetch(LEAFLET)
    (folder / "images").mkdir(parents=True)
    for file in LEAFLET.files:
        target = folder / "images" if file.name.endswith(".png") else folder
        shutil.copyfile(source / file.name, target / file.name)
    shutil.copyfile(source / LICENCE_FILE, folder / LICENCE_FILE)
