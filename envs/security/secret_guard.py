"""Refuses actions that could move the value of a declared secret to another origin through the browser.

Refused before anything reaches the page:

  - Copy, cut and paste, by keys or by the middle button. All origins share the clipboard (headless: all sessions of a
    browser), and a page's own copy cannot be distinguished from a person's selection.
  - A drag while documents inside and outside a secret's scope are shown together: it transfers selected text.
  - A value that the model types literally, in any spelling of :mod:`envs.security.secret_spellings` and also in several
    parts, into a document, a dialog or an address where the secret may not be used.
  - A secret in a form that sends to another origin, the submission of such a form, and a link that contains a value.

In addition, where the allowlist proxy can read requests, those that carry a value out of its scope fail
(:class:`envs.security.secret_requests.LeakCheck`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple, Protocol, Self
from urllib.parse import urlsplit

from playwright.async_api import Page

from envs.core.actions import (
    Action,
    ActionResult,
    AnswerDialog,
    Click,
    ClickAt,
    Drag,
    DragAt,
    Goto,
    Press,
    Reason,
    Status,
)
from envs.security.allowlist_proxy import AllowlistProxy
from envs.security.secret_requests import CHECK, LeakCheck
from envs.security.secrets import SecretVault

CLIPBOARD: Final = "copying and pasting is refused while secrets are declared: type the text instead"
MIDDLE: Final = "the middle button is refused while secrets are declared, because it pastes: use the left one"
DRAG: Final = "dragging is refused while the page shows documents of other origins than secret {names}'s"

_MODIFIERS: Final = frozenset(("Control", "ControlLeft", "ControlRight", "ControlOrMeta", "Meta", "MetaLeft"))
_MODIFIERS_ALSO: Final = frozenset(("MetaRight", "Alt", "AltLeft", "AltRight", "AltGraph"))
_COMMAND_KEYS: Final = re.compile(
    r"(?:Key)?[ABD-UWYZabd-uwyz]|(?:Digit)?[0-9]|F[0-9]{1,2}|Arrow\w+|Home|End|PageUp|PageDown|Backspace|Delete|Enter|Tab"
    r"|Escape|Space|[ +\-=,./;'`\[\]\\]|(?:Control|Shift|Alt|Meta)(?:Left|Right)?|ControlOrMeta"
)
"""Keys that may be pressed together with Control, Meta or Alt: none of them copies, cuts or pastes."""
_INSERT: Final = frozenset(("Insert", "Numpad0"))
_DELETE: Final = frozenset(("Delete", "NumpadDecimal"))
_KEPT_PARTS: Final = 4_000
"""Characters of literally typed text that are kept, to find a value that is typed in parts."""

# The addresses that the form of an element may be sent to, by itself or by any of its buttons. It uses the getters of
# the prototypes, because a field called `action` hides the form's own. An address that runs a script sends nothing.
_FORM: Final = """
  const getter = (type, name) => Object.getOwnPropertyDescriptor(type.prototype, name).get;
  const of = (type, name, element) => getter(type, name).call(element);
  const type = element => element.localName === 'button' ? HTMLButtonElement : HTMLInputElement;
  const isButton = e => e.localName === 'button' || (e.localName === 'input' && ['submit', 'image'].includes(e.type));
  const formOf = element => element.form || Element.prototype.closest.call(element, 'form');
  const method = form => of(HTMLFormElement, 'method', form);
  const action = form => of(HTMLFormElement, 'action', form);
  const fields = form => [...Node.prototype.getRootNode.call(form).querySelectorAll('button,input,textarea,select')]
    .filter(field => field.form === form);
  const leads = (form, button) => {
    const own = button && Element.prototype.hasAttribute.call(button, 'formmethod');
    if ((own ? of(type(button), 'formMethod', button) : method(form)) === 'dialog') return [];
    const named = button && Element.prototype.hasAttribute.call(button, 'formaction');
    const address = named ? of(type(button), 'formAction', button) : action(form);
    return /^javascript:/i.test(address) ? [] : [address];
  };
"""
SENT_TO: Final = f"""function () {{{_FORM}
  const form = formOf(this);
  if (!form) return [];
  return [...leads(form, null), ...fields(form).filter(isButton).flatMap(button => leads(form, button))];
}}"""

# The addresses that a click on the element, or Enter in it, submits to or follows, and the values that are sent there.
SUBMITS: Final = f"""function (enter) {{{_FORM}
  const link = Element.prototype.closest.call(this, 'a,area');
  if (link) return [[String(link.href)], [String(link.href)]];
  const label = Element.prototype.closest.call(this, 'label');
  const pressed = Element.prototype.closest.call(this, 'button,input') ?? (label && label.control);
  const form = formOf(pressed && isButton(pressed) ? pressed : this);
  if (!form) return [[], []];
  const buttons = fields(form).filter(isButton);
  const used = pressed && isButton(pressed) ? [pressed] : enter ? [null, ...buttons] : [];
  return [used.flatMap(button => leads(form, button)), fields(form).map(field => `${{field.name}}=${{field.value}}`)];
}}"""
# Documents and shadow roots, entered by the prototypes' getters: a page may name an element `activeElement`.
_INNER: Final = """
  const kind = root => of(Node, 'nodeType', root) === Node.DOCUMENT_FRAGMENT_NODE ? ShadowRoot : Document;
  const frameDocument = at => {
    for (const type of [HTMLIFrameElement, HTMLFrameElement, HTMLObjectElement]) {
      try { return of(type, 'contentDocument', at); } catch { continue; }
    }
    return null;
  };
  const inner = at => of(Element, 'shadowRoot', at) ?? frameDocument(at);
"""
# The same for Enter in the element that has the focus, and for a click at a point; frames of the same origin included.
FOCUSED: Final = f"""() => {{{_FORM}{_INNER}
  let at = null;
  for (let root = document; root; root = inner(at)) {{
    const next = of(kind(root), 'activeElement', root);
    if (!next) break;
    at = next;
  }}
  return at ? ({SUBMITS}).call(at, true) : [[], []];
}}"""
POINTED: Final = f"""(x, y) => {{{_FORM}{_INNER}
  let at = null;
  for (let root = document; root; ) {{
    const next = kind(root).prototype.elementFromPoint.call(root, x, y);
    if (!next || next === at) break;
    at = next;
    root = inner(at);
    if (root && kind(root) === Document) {{
      const box = Element.prototype.getBoundingClientRect.call(at);
      [x, y] = [x - box.left - of(Element, 'clientLeft', at), y - box.top - of(Element, 'clientTop', at)];
    }}
  }}
  return at ? ({SUBMITS}).call(at, false) : [[], []];
}}"""
# The value of a field, or the text of another element.
HELD: Final = """function () {
  const read = (type, name) => {
    try { return Object.getOwnPropertyDescriptor(type.prototype, name).get.call(this); } catch { return null; }
  };
  const value = [HTMLInputElement, HTMLTextAreaElement, HTMLSelectElement].map(type => read(type, 'value'));
  return String(value.find(text => text !== null) ?? read(Node, 'textContent') ?? '');
}"""


class LiveElement(Protocol):
    """An element of the live page, see :class:`envs.observer.target.Target`."""

    async def call(self, function: str, *args: object) -> Any: ...


class Submission(NamedTuple):
    addresses: Sequence[str]
    values: Sequence[str]


class SecretGuard:
    """Checks the actions of one session. Without declared secrets, all pass."""

    def __init__(self, vault: SecretVault) -> None:
        self.vault = vault
        self.typed: set[str] = set()
        """Secrets that were typed in this session, or may have been in the session that it continues."""
        self._parts = ""
        self.outgoing = LeakCheck(vault)

    @classmethod
    def at(cls, proxy: AllowlistProxy, vault: SecretVault) -> Self:
        """Creates a guard and adds its check of outgoing requests to the proxy. No check is added if every allowed
        origin is in every secret's scope, or if the browser does not accept the key for reading https."""
        guard = cls(vault)
        if proxy.may_read_tls and vault.can_leave(proxy.origins):
            proxy.checks.put(CHECK, guard.outgoing.check)
        return guard

    def refusal(self, action: Action, page: Page, absolute: Callable[[str, str], str]) -> ActionResult | None:
        """The refusal of *action* on *page*; None if it is allowed. *absolute* resolves the URL of a Goto against the
        current address."""
        if not self.vault:
            return None
        message = ""
        match action:
            case Press():
                message = CLIPBOARD if is_clipboard(action.keys) else self._literal(_typed_by(action.keys), _urls(page))
            case Click() | ClickAt():
                message = MIDDLE if action.button == "middle" else ""
            case Drag() | DragAt():
                message = self._drag(_urls(page))
            case AnswerDialog():
                message = self._literal(action.text, [page.url])
            case Goto():
                message = self._address(absolute(action.url, page.url))
            case _:
                pass
        return _blocked(message)

    async def typing(self, target: LiveElement, text: str, url: str) -> ActionResult | None:
        """The refusal to type *text*, as the model wrote it, into *target* in a document at *url*; None if allowed."""
        if not self.vault:
            return None
        names = self.vault.named_in(text)
        self.typed.update(names)
        addresses = [str(address) for address in await target.call(SENT_TO)] if names else []
        for address in addresses:
            if barred := [name for name in self.vault.barred_at(address) if name in names]:
                return _blocked(self._form(barred[0], address))
        held = str(await target.call(HELD)) if self.vault.barred_at(url) else ""
        return _blocked(self._literal(text, [url], held))

    def submission(self, answer: Sequence[Sequence[str]]) -> ActionResult | None:
        """The refusal to submit a form or follow a link, from the answer of SUBMITS, FOCUSED or POINTED; None if
        allowed."""
        submission = Submission(*answer)
        for address in submission.addresses:
            barred = self.vault.barred_at(address)
            held = self.vault.names_in_host("\n".join(submission.values)) if barred else frozenset[str]()
            for name in barred:
                if name in held:
                    return _blocked(self._form(name, address))
        return None

    def _form(self, name: str, address: str) -> str:
        place = self.vault.mask_host(_place(address))
        return f"the form or link sends to {place}, and secret {name} may only be used at {self._scope(name)}"

    def _literal(self, text: str, urls: Iterable[str], held: str = "") -> str:
        """The problem of typing *text* literally; *held* is the present value of the field."""
        barred = {name for url in urls for name in self.vault.barred_at(url)}
        if not barred or not text:
            return ""
        parts = (self._parts + text)[-max(_KEPT_PARTS, len(text)) :]
        spelled = frozenset[str]().union(*map(self.vault.names_whole_in, (text, parts, held + text)))
        for name in sorted(barred & spelled):
            return f"the text holds the value of secret {name}, which may only be used at {self._scope(name)}"
        self._parts = parts
        return ""

    def _address(self, url: str) -> str:
        for name in self.vault.barred_at(url):
            if name in self.vault.names_in_host(url):
                return f"the address holds the value of secret {name}, which may only be used at {self._scope(name)}"
        return ""

    def _drag(self, urls: Sequence[str]) -> str:
        barred = [set(self.vault.barred_at(url)) for url in urls]
        mixed = set[str]().union(*barred).difference(set(self.vault.names).intersection(*barred))
        return DRAG.format(names=" and ".join(sorted(mixed))) if mixed else ""

    def _scope(self, name: str) -> str:
        return dict(self.vault.scopes)[name]


def is_clipboard(keys: str) -> bool:
    """True if a key combination in Playwright's notation copies, cuts or pastes, or is not in the list of safe ones."""
    *held, key = [part or "+" for part in re.split(r"(?<=.)\+", keys, flags=re.DOTALL)] or [""]
    if key in _INSERT:
        return bool(held)
    if key in _DELETE:
        return any(modifier.startswith("Shift") for modifier in held)
    if not _MODIFIERS.union(_MODIFIERS_ALSO).intersection(held):
        return False
    return _COMMAND_KEYS.fullmatch(key) is None


def _typed_by(keys: str) -> str:
    key = keys.removeprefix("Shift+")
    if match := re.fullmatch(r"(?:Key([A-Z])|(?:Digit|Numpad)([0-9]))", key):
        return match[1].lower() if match[1] else match[2]
    return {"Space": " ", "Enter": "\n"}.get(key, key if len(key) == 1 else "")


def _urls(page: Page) -> list[str]:
    """The addresses of the documents on *page*. Documents without an own address were created by one of these."""
    return [frame.url for frame in page.frames if not frame.url.startswith("about:") and frame.url]


def _place(address: str) -> str:
    """The origin of *address*, without credentials; for another scheme than http and https, the scheme."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return "an address that cannot be parsed"
    if parts.scheme not in ("http", "https"):
        return f"a {parts.scheme}: address"
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def _blocked(message: str) -> ActionResult | None:
    return ActionResult(status=Status.BLOCKED, reason=Reason.SECRET_NOT_ALLOWED, message=message) if message else None
