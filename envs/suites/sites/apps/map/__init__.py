"""The map: pages over OpenStreetMap data of central Helsinki, drawn with Leaflet.

Map data (c) OpenStreetMap contributors, Open Database Licence 1.0. Every page shows this notice.
"""

from envs.suites.sites.apps.map.site import MapSite

__all__ = ["SITE"]

SITE = MapSite()
