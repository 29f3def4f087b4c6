"""Masks declared secrets in the observations and results of a session."""

from __future__ import annotations

import dataclasses

from envs.core.actions import ActionResult, DialogReport
from envs.core.observation import Element, Observation
from envs.observer.observer import page_digest
from envs.security.blocked_requests import BlockedOrigin
from envs.security.held_requests import HeldRequest
from envs.security.secrets import SecretVault

HIDDEN = "screenshot left out: a secret is visible on the page"


def masked_observation(seen: Observation, secrets: SecretVault) -> Observation:
    """*seen* with every secret's value replaced by its name. A screenshot that would show a value is removed."""
    if not secrets:
        return seen
    mask = secrets.mask
    url, text = mask(seen.url), mask(seen.text)
    elements = _elements(seen.elements, secrets)
    shows = text != seen.text or any(new.value != old.value for new, old in zip(elements, seen.elements, strict=True))
    hide = shows and seen.screenshot is not None
    return dataclasses.replace(
        seen,
        url=url,
        title=mask(seen.title),
        text=text,
        elements=elements,
        # Computed from the masked text: a digest of the original would allow guessing a value.
        digest=page_digest(url, text, elements) if seen.dialog is None else seen.digest,
        tabs=tuple(dataclasses.replace(tab, title=mask(tab.title), url=mask(tab.url)) for tab in seen.tabs),
        dialog=_dialog(seen.dialog, secrets) if seen.dialog else None,
        blocked=_blocked(seen.blocked, secrets),
        surfaces=tuple(dataclasses.replace(surface, name=mask(surface.name)) for surface in seen.surfaces),
        screenshot=None if hide else seen.screenshot,
        note="; ".join(filter(None, (mask(seen.note), HIDDEN if hide else ""))),
    )


def masked_result(result: ActionResult, secrets: SecretVault) -> ActionResult:
    """*result* with every secret's value replaced by its name."""
    if not secrets:
        return result
    mask = secrets.mask
    return result.model_copy(
        update={
            "message": mask(result.message),
            "output": mask(result.output),
            "url": mask(result.url),
            "dialogs": tuple(_dialog(dialog, secrets) for dialog in result.dialogs),
            "downloads": tuple(
                d.model_copy(update={"name": mask(d.name), "path": mask(d.path)}) for d in result.downloads
            ),
            "blocked_requests": _blocked(result.blocked_requests, secrets),
            "held_requests": tuple(_held(request, secrets) for request in result.held_requests),
        }
    )


def _elements(elements: tuple[Element, ...], secrets: SecretVault) -> tuple[Element, ...]:
    """Masks elements. One search over all texts skips most pages; cut texts end with `…` there as well."""
    texts = "\n".join(
        text for e in elements for text in (e.key.name, e.tag, e.value or "", e.title, *e.options, *e.cues)
    )
    return tuple(_element(element, secrets) for element in elements) if secrets.names_in(texts) else elements


def _element(element: Element, secrets: SecretVault) -> Element:
    mask = secrets.mask
    return dataclasses.replace(
        element,
        key=dataclasses.replace(element.key, name=mask(element.key.name)),
        tag=mask(element.tag),  # the page names its custom elements
        value=None if element.value is None else mask(element.value),
        options=tuple(mask(option) for option in element.options),
        cues=tuple(mask(cue) for cue in element.cues),  # icons are named by the page's classes
        title=mask(element.title),
    )


def _blocked(blocked: tuple[BlockedOrigin, ...], secrets: SecretVault) -> tuple[BlockedOrigin, ...]:
    """Masks host names, because a page can put typed text into one."""
    return tuple(
        entry.model_copy(update={"origin": secrets.mask_host(entry.origin), "allow": secrets.mask_host(entry.allow)})
        for entry in blocked
    )


def _held(held: HeldRequest, secrets: SecretVault) -> HeldRequest:
    mask = secrets.mask
    fields = tuple((mask(name), mask(value)) for name, value in held.fields)
    overrides = tuple(map(mask, held.overrides))
    return held.model_copy(
        update={"method": mask(held.method), "overrides": overrides, "url": mask(held.url), "fields": fields}
    )


def _dialog(dialog: DialogReport, secrets: SecretVault) -> DialogReport:
    return dialog.model_copy(update={"message": secrets.mask(dialog.message)})
