// The flat tree of a page, and its texts without what deceives.

const closedRoots = new WeakMap(); // host → its closed shadow root, handed in by the observer
const askedHosts = new WeakMap(); // host → times the observer was asked for a closed root
const listening = new WeakSet(); // elements with a listener for pointer events
const oncePassword = new WeakSet(); // a field that ever was a password stays masked
const shadowOf = (element) => openRoot(element) ?? closedRoots.get(element) ?? null;

// Names that mean something in HTML. An element of another namespace (<math><input>) has none of its behaviour.
const HTML_ONLY = new Set(('input select textarea button label iframe frame slot details summary form dialog table tr td th ' +
  'ul ol li main nav aside header footer fieldset area video audio img br hr canvas object embed option optgroup html body ' +
  'h1 h2 h3 h4 h5 h6').split(' '));
/** What an element goes by: its local name, with a colon before it where that would be mistaken for HTML. */
function tagOf(element) {
  const name = localName(element);
  return HTML_ONLY.has(name) && !isHtml(element) ? ':' + name : name;
}

/** The children of a node in the flat tree: shadow content instead of light children, slotted nodes in slots. */
function flatChildren(node) {
  const children = [];
  if (nodeType(node) === 1) {
    if (htmlTag(node) === 'slot' && getRootNode(node) !== ownerDocument(node)) {
      const assigned = assignedNodes(node);
      if (assigned.length) return assigned;
    }
    node = shadowOf(node) ?? node;
  }
  for (let child = firstChild(node); child; child = nextSibling(child)) children.push(child);
  return children;
}

/** What `told` makes of the first elements of a collection; a page may have very many. */
const firstOf = (collection, most, told) => Array.from({ length: Math.min(collection.length, most) }, (_, i) => told(collection[i]));

/** The host of a shadow root, null for any other fragment. */
const rootHost = (root) => (isShadowRoot(root) ? hostOfRoot(root) : null);

/** The host of a shadow root, else the parent. */
function flatParent(node) {
  const parent = parentNode(node);
  return parent && nodeType(parent) === 11 ? rootHost(parent) : parent;
}

/** The document of an iframe in this process, or null where another process draws it. */
function documentOf(frame) {
  try {
    return frameDocument(frame) ?? null;
  } catch {
    return null;
  }
}

const INVISIBLE = /[\u0000-\u0008\u000e-\u001f\u007f\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]/g;
/** Text without control, zero-width and direction characters, which can only serve to deceive here, and well-formed: a
 * name is compared with what was made of it outside the page, where a lone surrogate cannot be stored. */
const visible = (text) => text.replace(INVISIBLE, '').toWellFormed();
/** The same as one line. */
const clean = (text) => visible(text).replace(/\s+/g, ' ').trim();
const cut = (text, limit) => (text.length <= limit ? text : text.slice(0, limit - 1).replace(/[\ud800-\udbff]$/, '') + '…');

/** Puts a backslash before what looks like a ref or a group marker, so that only the observer makes them. */
const escaped = (text) =>
  /[[…]/.test(text)
    ? text.replace(/(?<!\\)\\*\[(?=\s*\p{Nd}+\s*\])/gu, (run) => '\\'.repeat(2 * run.length - 1) + '[').replace(/…(?=\s*g\p{Nd})/gu, '\\…')
    : text;
/** The same for text that starts a line, where frame and heading markers count too. */
const escapedStart = (text) => (/^(---|# )/.test(text) ? '\\' + text : text);
const quoted = (text) => '"' + escaped(text.replace(/\\/g, '\\\\').replace(/"/g, '\\"')) + '"';

/** An answer for the observer, as JSON. Every string of it is well-formed and without NUL: the last edge inside the page. */
function sent(answer) {
  const json = JSON.stringify(answer);
  if (!json.includes('\\ud') && !json.includes('\\u0000')) return json; // lone surrogates are written as escapes
  return JSON.stringify(answer, (_, one) => (typeof one === 'string' ? storable(one) : one));
}
const storable = (text) => text.toWellFormed().replaceAll('\0', '\ufffd');

/** FNV-1a over UTF-16 units, continued from `hash`. */
function fnv(text, hash = 0x811c9dc5) {
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash >>> 0;
}
