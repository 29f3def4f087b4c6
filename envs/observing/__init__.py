"""How a page is read: the in-page program (`*.js`), the isolated worlds it runs in, and the merging of their answers.

:class:`envs.observer.Observer` is the way in; nothing here is promised to other rooms.
"""

from __future__ import annotations

__all__: list[str] = []
