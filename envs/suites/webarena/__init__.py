"""WebArena, WebArena-Lite and WebArena-Verified: readers of their task files, evaluators, and suites.

The task files are published by others and are not part of the repository (`mira data get webarena-lite`).
You run the sites; `WA_SHOPPING`, `WA_SHOPPING_ADMIN`, `WA_REDDIT`, `WA_GITLAB`, `WA_MAP` and `WA_WIKIPEDIA`
name their addresses. No string of a task file is run as Python: its few `func:` names are mapped to
functions, and its element locators run inside the page, in an isolated script world with a time limit.
"""
