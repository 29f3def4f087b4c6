"""WebArena, WebArena-Lite and WebArena-Verified: their task files, their evaluators, and suites that play them.

The tasks are other people's and are not carried here (`mira data get webarena-lite`); the sites are
yours, named by `WA_SHOPPING`, `WA_SHOPPING_ADMIN`, `WA_REDDIT`, `WA_GITLAB`, `WA_MAP`, `WA_WIKIPEDIA`.
No string of a task file is ever run as Python: its few `func:` names are mapped to functions of ours,
and its element locators run inside the page, in a script world of our own, within a bound.
"""
