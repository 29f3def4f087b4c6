// The flat tree of a page, and its texts without deceptive characters.

const closedRoots = new WeakMap(); // host → its closed shadow root, sent by the observer
const askedHosts = new WeakMap(); // host → number of requests to the observer for a closed root
const listening = new WeakSet(); // elements with a listener for pointer events
const oncePassword = new WeakSet(); // a field that was ever a password field stays masked
const shadowOf = (element) => openRoot(element) ?? closedRoots.get(element) ?? null;

// Tag names of HTML. An element of another namespace (<math><input>) does not have their behaviour.
const HTML_ONLY = new Set(('input select textarea button label iframe frame slot details summary form dialog table tr td th ' +
  'ul ol li main nav aside header footer fieldset area video audio img br hr canvas object embed option optgroup html body ' +
  'h1 h2 h3 h4 h5 h6').split(' '));
/** The local name of an element, with a colon before it if it would look like an HTML element. */
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

/** Maps the first elements of a collection, which may be very long. */
const firstOf = (collection, most, map) => Array.from({ length: Math.min(collection.length, most) }, (_, i) => map(collection[i]));

/** The host of a shadow root; null for other fragments. */
const rootHost = (root) => (isShadowRoot(root) ? hostOfRoot(root) : null);

/** The host of a shadow root, else the parent. */
function flatParent(node) {
  const parent = parentNode(node);
  return parent && nodeType(parent) === 11 ? rootHost(parent) : parent;
}

/** The document of an iframe in this process; null if another process draws it. */
function documentOf(frame) {
  try {
    return frameDocument(frame) ?? null;
  } catch {
    return null;
  }
}

/** Invisible characters that are kept: the flags of England, Scotland and Wales, one joiner or non-joiner after a letter
 *  of a script that needs it, the joiner between two emoji, a variation selector after a character that has variants. */
const KEPT = [
  '\u{1F3F4}\u{E0067}\u{E0062}(?:\u{E0065}\u{E006E}\u{E0067}|\u{E0073}\u{E0063}\u{E0074}|\u{E0077}\u{E006C}\u{E0073})\u{E007F}',
  '(?<=[\u0620-\u08ff\u0900-\u109f\u1780-\u17b3\u17b6-\u180a\u1810-\u18af\u1900-\u1cff\ua800-\uabff\ufb50-\ufdcf\ufe70-\ufefc])[\u200c\u200d]',
  '(?<=(?:\\p{Extended_Pictographic}|\\p{Emoji_Modifier})\ufe0f?)\u200d(?=\\p{Extended_Pictographic})',
  '(?<=\\p{Extended_Pictographic})[\ufe0e\ufe0f]|(?<=[0-9#*])\ufe0f(?=\u20e3)',
  '(?<=[\u2e80-\u9fff\uf900-\ufaff\uff01-\uff9f\u{20000}-\u{323AF}\u1000-\u109f]|(?![+<=>|~])\\p{Sm})[\ufe00-\ufe0d]',
  '(?<=\\p{Ideographic})[\u{E0100}-\u{E01EF}]|(?<=[\u1820-\u18aa])[\u180b-\u180f]',
].join('|');
/** All characters that prompts remove (models/prompting/invisible_characters.py). They are removed here, before a text is
 *  searched for imitated refs, because removing a character later could create one. */
const HIDDEN =
  '\u0000-\u0008\u000e-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f' +
  '\u202a-\u202e\u2060-\u206f\u3164\ufdd0-\ufdef\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff';
const INVISIBLE = new RegExp(
  `(${KEPT})|[${HIDDEN}\u{13430}-\u{1345F}\u{1BCA0}-\u{1BCA3}\u{1D173}-\u{1D17A}\u{E0000}-\u{E0FFF}]|\\p{Noncharacter_Code_Point}`,
  'gu'
);
/** A pre-check that matches every text that INVISIBLE matches, ten times as fast; for pairs it tests one half. */
const SUSPICIOUS = new RegExp(`[${HIDDEN}\ud80d\ud82f\ud834\udb40-\udb7f\udffe\udfff]`);
/** Well-formed text without invisible characters. A name must equal its stored form outside the page, where a lone
 * surrogate cannot be stored. */
const visible = (text) => (SUSPICIOUS.test(text) ? text.replace(INVISIBLE, '$1') : text).toWellFormed();
/** The same as one line. */
const clean = (text) => visible(text).replace(/\s+/g, ' ').trim();
const cut = (text, limit) => (text.length <= limit ? text : text.slice(0, limit - 1).replace(/[\ud800-\udbff]$/, '') + '…');

/** Puts a backslash before text that looks like a ref or a group marker, so a page cannot forge them. */
const escaped = (text) =>
  /[[…]/.test(text)
    ? text.replace(/(?<!\\)\\*\[(?=\s*\p{Nd}+\s*\])/gu, (run) => '\\'.repeat(2 * run.length - 1) + '[').replace(/…(?=\s*g\p{Nd})/gu, '\\…')
    : text;
/** The same for text at the start of a line, including frame and heading markers. */
const escapedStart = (text) => (/^(---|# )/.test(text) ? '\\' + text : text);
const quoted = (text) => '"' + escaped(text.replace(/\\/g, '\\\\').replace(/"/g, '\\"')) + '"';

/** An answer for the observer as JSON. All of its strings are made well-formed and free of NUL here. */
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
