"""How a page is read: the in-page program (`in_page/*.js`), the isolated worlds it runs in, and the merging of their
answers. Also the text of a page: its lines, its focus for small models, its state without what changes by itself.

:class:`envs.observer.observer.Observer` is the entry point.
"""
