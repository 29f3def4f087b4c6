"""The map site: our own pages over OpenStreetMap data of central Helsinki, drawn with Leaflet.

Map data (c) OpenStreetMap contributors, Open Database Licence 1.0; every page says so.
"""

from envs.suites.sites.apps.map.site import MapSite

__all__ = ["SITE"]

SITE = MapSite()
