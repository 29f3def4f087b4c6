"""The applications behind the sites, one package each; imported only inside the process that serves or builds one.

A package `envs.suites.sites.apps.NAME` has a `SITE` that fulfils :class:`envs.suites.sites.apps.base.SiteApp`.
"""
