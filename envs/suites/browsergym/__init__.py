"""Runs environments registered with BrowserGym as a suite: `mira run --suite browsergym:ENV`.

BrowserGym pins Playwright 1.44 and uses its blocking interface, so it runs in its own Python
(`BROWSERGYM_PYTHON`, any virtual environment with `browsergym-core` and the benchmark) and in its own
process. Both sides control one Chromium, which this package starts: BrowserGym sets up and scores the
task, Mira's session observes the same pages and acts on them, and every request passes the allowlist proxy.
"""
