"""Any environment that is registered with BrowserGym, as a suite of ours: `mira run --suite browsergym:ENV`.

BrowserGym pins Playwright 1.44 and speaks its blocking interface, so it lives in a Python of its own
(`BROWSERGYM_PYTHON`, any virtual environment with `browsergym-core` and the benchmark) and in a process
of its own. Both sides drive one Chromium, which is started here: BrowserGym sets the task up in it and
judges it, our session looks at the very same pages and acts on them, and every request passes our proxy.
"""
