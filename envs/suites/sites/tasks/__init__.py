"""The tasks, one package per site.

Each package defines `TEMPLATES` (a tuple of template objects) and, once per site, `NOISE` (the database changes that
every visit makes). `shared.py` holds what the templates of a site share. `multi.py` has the tasks across two sites.
"""
