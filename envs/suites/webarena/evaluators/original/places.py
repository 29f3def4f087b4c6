"""Replaces addresses by placeholders and back as webarena-verified does, for the task's sites only."""

from __future__ import annotations

from collections.abc import Callable

from envs.suites.webarena.evaluators.evidence import Evidence
from envs.suites.webarena.evaluators.original.normal import Derender
from envs.suites.webarena.evaluators.original.readers import Unreadable


def derender_to(evidence: Evidence, *, strict: bool = False) -> Derender:
    """Replaces the longest address of a task's site that occurs. *strict*: one must occur."""
    known = [(url, f"__{site.upper()}__") for site, url in evidence.sites.urls.items() if site in evidence.task_sites]
    known.sort(key=lambda pair: len(pair[0]), reverse=True)

    def derender(text: str) -> str:
        for url, name in known:
            if url in text:
                return text.replace(url, name)
        if strict:
            raise Unreadable(f"{text} is on none of the task's sites")
        return text

    return derender


def render_with(evidence: Evidence) -> Callable[[str], str]:
    """Replaces the placeholder at the beginning of a text by its address. Raises Unreadable if there is none."""

    def render(text: str) -> str:
        for site in evidence.task_sites:
            name = f"__{site.upper()}__"
            if text.startswith(name) and site in evidence.sites.urls:
                return text.replace(name, evidence.sites.urls[site])
        raise Unreadable(f"{text} begins with none of the task's sites")

    return render
