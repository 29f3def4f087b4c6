"""The applications of the sites, one package each. Only the process that builds or serves an application imports it.

A package `envs.suites.sites.apps.NAME` defines `SITE`, a :class:`envs.suites.sites.apps.base.SiteApp`.
"""
