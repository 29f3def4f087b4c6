"""The tasks, one module a site: `TEMPLATES` (a tuple of objects) and `NOISE` (what a visit alone changes there)."""
