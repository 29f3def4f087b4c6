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

/** What is kept of invisible characters: the flags of England, Scotland and Wales, one joiner or non-joiner after a letter
 *  of a script that needs it, the joiner between two emoji, a variation selector after a character that has variants. */
const KEPT = [
  '\u{1F3F4}\u{E0067}\u{E0062}(?:\u{E0065}\u{E006E}\u{E0067}|\u{E0073}\u{E0063}\u{E0074}|\u{E0077}\u{E006C}\u{E0073})\u{E007F}',
  '(?<=[\u0620-\u08ff\u0900-\u109f\u1780-\u17b3\u17b6-\u180a\u1810-\u18af\u1900-\u1cff\ua800-\uabff\ufb50-\ufdcf\ufe70-\ufefc])[\u200c\u200d]',
  '(?<=(?:\\p{Extended_Pictographic}|\\p{Emoji_Modifier})\ufe0f?)\u200d(?=\\p{Extended_Pictographic})',
  '(?<=\\p{Extended_Pictographic})[\ufe0e\ufe0f]|(?<=[0-9#*])\ufe0f(?=\u20e3)',
  '(?<=[\u2e80-\u9fff\uf900-\ufaff\uff01-\uff9f\u{20000}-\u{323AF}\u1000-\u109f]|(?![+<=>|~])\\p{Sm})[\ufe00-\ufe0d]',
  '(?<=\\p{Ideographic})[\u{E0100}-\u{E01EF}]|(?<=[\u1820-\u18aa])[\u180b-\u180f]',
].join('|');
/** All that prompts leave out (models/invisible.py). It is left out here, before a text is searched for what looks like a
 *  ref: a character taken out later would make one. */
const HIDDEN =
  '\u0000-\u0008\u000e-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f' +
  '\u202a-\u202e\u2060-\u206f\u3164\ufdd0-\ufdef\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff';
const INVISIBLE = new RegExp(
  `(${KEPT})|[${HIDDEN}\u{13430}-\u{1345F}\u{1BCA0}-\u{1BCA3}\u{1D173}-\u{1D17A}\u{E0000}-\u{E0FFF}]|\\p{Noncharacter_Code_Point}`,
  'gu'
);
/** Found in every text that INVISIBLE finds something in, ten times as fast; of pairs, one half is looked for. */
const SUSPICIOUS = new RegExp(`[${HIDDEN}\ud80d\ud82f\ud834\udb40-\udb7f\udffe\udfff]`);
const withoutInvisible = (text) => (SUSPICIOUS.test(text) ? text.replace(INVISIBLE, '$1') : text);
/** One line without characters that nobody sees: they can only serve to deceive. */
const clean = (text) => withoutInvisible(text).replace(/\s+/g, ' ').trim();
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
