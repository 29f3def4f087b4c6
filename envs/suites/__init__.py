"""Suites of tasks: MiniWoB++, the sites, WebArena, BrowserGym, and open tasks on live websites."""
