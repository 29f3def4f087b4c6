// Reading a page that may not want to be read.
// This code runs in an isolated world: the page can neither see it nor change its built-ins. What a page
// can still do is shadow a property of a form or of the document by naming an element after it
// (<input name=childNodes>), so structure is read through the prototypes' own getters.

const getter = (prototype, name) => {
  const get = Object.getOwnPropertyDescriptor(prototype, name).get;
  return (node) => get.call(node);
};
const nodeType = getter(Node.prototype, 'nodeType');
const firstChild = getter(Node.prototype, 'firstChild');
const nextSibling = getter(Node.prototype, 'nextSibling');
const parentNode = getter(Node.prototype, 'parentNode');
const isConnected = getter(Node.prototype, 'isConnected');
const textContent = getter(Node.prototype, 'textContent');
const ownerDocument = getter(Node.prototype, 'ownerDocument');
const localName = getter(Element.prototype, 'localName');
const openRoot = getter(Element.prototype, 'shadowRoot');
const firstElement = getter(Element.prototype, 'firstElementChild');
const rootElement = getter(Document.prototype, 'documentElement');
const scroller = getter(Document.prototype, 'scrollingElement');
const titleOf = getter(Document.prototype, 'title');
const addressOf = getter(Document.prototype, 'URL');
const modalOf = (page) => Document.prototype.querySelector.call(page, ':modal');
const getAttribute = Element.prototype.getAttribute;
const attr = (element, name) => getAttribute.call(element, name) ?? '';
const hasAttr = (element, name) => getAttribute.call(element, name) !== null;
const hasAttributes = (element) => Element.prototype.hasAttributes.call(element);
const boxOf = (element) => Element.prototype.getBoundingClientRect.call(element);
const matches = (element, selector) => Element.prototype.matches.call(element, selector);
const getRootNode = (node) => Node.prototype.getRootNode.call(node);

const closedRoots = new WeakMap(); // host → its closed shadow root, handed in by the observer
const askedHosts = new WeakMap(); // host → times the observer was asked for a closed root
const listening = new WeakSet(); // elements with a listener for pointer events
const oncePassword = new WeakSet(); // a field that ever was a password stays masked
const shadowOf = (element) => openRoot(element) ?? closedRoots.get(element) ?? null;

/** The children of a node in the flat tree: shadow content instead of light children, slotted nodes in slots. */
function flatChildren(node) {
  const children = [];
  if (nodeType(node) === 1) {
    if (localName(node) === 'slot' && getRootNode(node) !== ownerDocument(node)) {
      const assigned = HTMLSlotElement.prototype.assignedNodes.call(node);
      if (assigned.length) return assigned;
    }
    node = shadowOf(node) ?? node;
  }
  for (let child = firstChild(node); child; child = nextSibling(child)) children.push(child);
  return children;
}

/** The host of a shadow root, else the parent. */
function flatParent(node) {
  const parent = parentNode(node);
  return parent && nodeType(parent) === 11 ? parent.host ?? null : parent;
}

/** The document of an iframe in this process, or null where another process draws it. */
function documentOf(frame) {
  try {
    return frame.contentDocument;
  } catch {
    return null;
  }
}

const INVISIBLE = /[\u0000-\u0008\u000e-\u001f\u007f\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]/g;
/** One line without control, zero-width and direction characters, which can only serve to deceive here. */
const clean = (text) => text.replace(INVISIBLE, '').replace(/\s+/g, ' ').trim();
const cut = (text, limit) => (text.length <= limit ? text : text.slice(0, limit - 1).replace(/[\ud800-\udbff]$/, '') + '…');

/** Puts a backslash before what looks like a ref or a group marker, so that only the observer makes them. */
const escaped = (text) =>
  /[[…]/.test(text)
    ? text.replace(/\\*\[(?=\s*\p{Nd}+\s*\])/gu, (run) => '\\'.repeat(2 * run.length - 1) + '[').replace(/…(?=\s*g\p{Nd})/gu, '\\…')
    : text;
/** The same for text that starts a line, where frame and heading markers count too. */
const escapedStart = (text) => (/^(---|# )/.test(text) ? '\\' + text : text);
const quoted = (text) => '"' + escaped(text.replace(/\\/g, '\\\\').replace(/"/g, '\\"')) + '"';

/** FNV-1a over UTF-16 units, continued from `hash`. */
function fnv(text, hash = 0x811c9dc5) {
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash >>> 0;
}
