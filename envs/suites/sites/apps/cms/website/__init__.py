"""The museum's page types, settings and pages: a Django application."""
