"""Reads pages: the in-page program (`in_page/*.js`), its isolated worlds, and the merging of their answers. Also
processes page text: lines, excerpts for small models, and page states without volatile parts.

:class:`envs.observer.observer.Observer` is the entry point.
"""
