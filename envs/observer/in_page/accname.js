// The accessible name of an element by its markup: accname 1.2, HTML-AAM and SVG-AAM.
// The walk over an element's content is iterative, because a page may be nested deeper than the call stack.

const CONTENT_ROLES = new Set([...FROM_CONTENT, 'cell', 'columnheader', 'rowheader', 'heading', 'row', 'tooltip']);
const CONTENT_TAGS = new Set('h1 h2 h3 h4 h5 h6 td th option summary legend caption'.split(' '));
const POPUPS = new Set('menu menubar tree listbox dialog tabpanel'.split(' ')); // inside a widget: not part of its name
const RANGES = new Set('slider spinbutton progressbar scrollbar meter'.split(' '));
const NAMED_BY = 50; // maximum number of elements of an aria-labelledby or aria-owns, and of labels
const CONTENT_NODES = 3000; // nodes read for one name
const WORD_GAP = 0.15; // ems between two pieces of text that separate words

/** One computation of a name. */
class Naming {
  constructor(limit, { loose = false, drawn = false, entered = false } = {}) {
    this.limit = limit; // about as many characters of a content are read
    this.loose = loose; // whether text is included that only assistive technology does not get (aria-hidden)
    this.drawn = drawn; // whether the named element is known to be drawn
    this.entered = entered; // whether words of style sheets, such as a placeholder, are left out
    this.seen = new Set(); // elements that a reference used or that are being named
    this.referring = false; // an aria-labelledby inside a referenced element is not followed
  }
}

/** The name by accname: labels, attributes, content, title. */
function statedName(element, tag, role, naming) {
  const label = labelledBy(element, naming) || clean(attr(element, 'aria-label')) || hostName(element, tag, naming);
  if (label) return label;
  naming.seen.add(element);
  return (isNamedByContent(tag, role) && contentOf(element, naming, { role, drawn: naming.drawn })) || clean(attr(element, 'title'));
}

const isNamedByContent = (tag, role) => (role ? CONTENT_ROLES.has(role) && tag !== 'input' : CONTENT_TAGS.has(tag));

function labelledBy(element, naming) {
  const ids = (attr(element, 'aria-labelledby') || attr(element, 'aria-labeledby')).trim();
  if (!ids || naming.referring) return '';
  naming.referring = true;
  naming.seen.add(element);
  const text = referenced(element, ids).map((part) => referencedName(part, naming)).join(' ');
  naming.referring = false;
  return clean(text);
}

/** The existing elements with these ids. */
function referenced(element, ids) {
  if (!isConnected(element)) return [];
  const root = getRootNode(element);
  return ids.split(/\s+/, NAMED_BY).map((id) => byId(root, id)).filter((part) => part !== null);
}

function referencedName(element, naming) {
  naming.seen.add(element);
  const tag = tagOf(element);
  return embeddedValue(element, tag) ?? (clean(attr(element, 'aria-label')) || hostName(element, tag, naming) ||
    contentOf(element, naming, { all: isHidden(element), embeds: true }) || clean(attr(element, 'title')));
}

/** Whether it is laid out; true for `display: contents`. */
const isLaidOut = (element) => checkVisibility(element) || getComputedStyle(element).display === 'contents';
const isHidden = (element) => !isLaidOut(element) || getComputedStyle(element).visibility !== 'visible' ||
  closest(element, '[aria-hidden=true]') !== null;

/** The name that HTML or SVG gives an element. */
function hostName(element, tag, naming) {
  switch (tag) {
    case 'input':
    case 'select':
    case 'textarea':
    case 'button':
    case 'meter':
    case 'output':
    case 'progress':
      return labelText(element, naming) || (tag === 'input' ? inputName(element) : '');
    case 'img':
    case 'area':
      return isPresentational(element) ? '' : clean(attr(element, 'alt'));
    case 'fieldset':
      return childText(element, 'legend', naming);
    case 'table':
      return childText(element, 'caption', naming);
    case 'figure':
      return childText(element, 'figcaption', naming);
    case 'optgroup':
      return clean(attr(element, 'label'));
    case 'svg':
      return svgTitle(element);
    default:
      return '';
  }
}

const isPresentational = (element) => /^\s*(?:none|presentation)\b/i.test(attr(element, 'role'));

function inputName(element) {
  const type = typeOf(element);
  if (type === 'image') return clean(attr(element, 'alt') || attr(element, 'value'));
  if (type !== 'submit' && type !== 'button' && type !== 'reset') return '';
  return clean(valueOf(element)) || (type === 'submit' ? 'Submit' : type === 'reset' ? 'Reset' : '');
}

let labelsByRoot = null; // during a walk: root → Map of its labelled elements to their labels

/** Begins or ends a walk. An element's own list of labels searches the whole tree, so a walk reads all labels once. */
const collectLabels = (walking) => void (labelsByRoot = walking ? new Map() : null);

function labelsAround(element) {
  if (labelsByRoot === null) return labelsOf(element) ?? [];
  const root = getRootNode(element);
  if (!labelsByRoot.has(root)) labelsByRoot.set(root, labelsIn(root));
  return labelsByRoot.get(root).get(element) ?? [];
}

function labelsIn(root) {
  const labels = new Map();
  for (const label of allIn(root, 'label')) {
    const target = labelTarget(label);
    if (!target) continue;
    if (labels.has(target)) labels.get(target).push(label);
    else labels.set(target, [label]);
  }
  return labels;
}

function labelText(element, naming) {
  const labels = labelsAround(element);
  if (!labels.length) return '';
  const content = (label, all) => contentOf(label, naming, { all, without: element, embeds: true });
  const texts = firstOf(labels, NAMED_BY, (label) => clean(attr(label, 'aria-label')) || content(label, false) ||
    (isHidden(label) ? content(label, true) : ''));
  return clean(texts.join(' '));
}

function childText(element, tag, naming) {
  if (isPresentational(element)) return '';
  for (let child = firstElement(element); child; child = nextElement(child)) {
    if (htmlTag(child) === tag) return contentOf(child, naming, {});
  }
  return '';
}

function svgTitle(element) {
  const title = queryFirst(element, ':scope > title') ?? queryFirst(element, 'title');
  return title ? clean(textContent(title)) : '';
}

/** The value of a control inside the label of another one; null if it is no such control. A password has none. */
function embeddedValue(element, tag) {
  if (tag === 'textarea') return isPassword(element) ? '' : clean(valueOf(element));
  if (tag === 'select') return clean(firstOf(chosenOf(element), NAMED_BY, labelOf).join(' '));
  const role = attr(element, 'role').trim().toLowerCase() || (tag === 'input' ? inputRole(element, typeOf(element)) : '');
  if (RANGES.has(role)) {
    const stated = attr(element, 'aria-valuetext') || attr(element, 'aria-valuenow');
    return clean(stated || (tag === 'input' ? valueOf(element) : ''));
  }
  if (role === 'listbox' && tag !== 'input') {
    return clean(firstOf(queryAll(element, '[role=option][aria-selected=true]'), NAMED_BY, textContent).join(' '));
  }
  if (tag === 'input') return TEXTUAL.has(role) ? (isPassword(element) ? '' : clean(valueOf(element))) : null;
  return null;
}

/** The text of a subtree. `all` includes hidden parts, `embeds` the values of controls; `role` is the role of `element`. */
function contentOf(element, naming, { all = false, without = null, embeds = false, drawn = false, role = '' }) {
  return drawn || all || isLaidOut(element) ? new Content(naming, all, without, embeds || WIDGETS.has(role), role).of(element, drawn) : '';
}

/** The visible text of a subtree, about `limit` characters at most; `all` includes hidden parts. */
function contentText(element, limit, all = false) {
  return contentOf(element, new Naming(limit, { loose: true }), { all });
}

/** The same without the words of style sheets: what an editor holds. */
function enteredText(element, limit) {
  return contentOf(element, new Naming(limit, { loose: true, entered: true }), {});
}

class Content {
  constructor(naming, all, without, embeds, role) {
    this.naming = naming;
    this.all = all;
    this.without = without;
    this.embeds = embeds;
    this.role = role;
    this.selector = ''; // of elements with words before or after them
    this.text = '';
    this.stack = [];
    this.last = null; // the last node or element that added text
  }

  of(element, drawn) {
    this.selector = this.naming.entered ? '' : selectorOfWords(element);
    if (this.holdsOneText(element) && (drawn || this.all || getComputedStyle(element).visibility === 'visible')) this.addText(firstChild(element));
    else this.enter(element, getComputedStyle(element), '');
    for (let left = CONTENT_NODES; left && this.stack.length && this.text.length < 2 * this.naming.limit + 200; left--) {
      const item = this.stack.pop();
      if (typeof item === 'function') item();
      else if (nodeType(item) === 3) this.addText(item);
      else if (nodeType(item) === 1) this.visit(item, tagOf(item));
    }
    return clean(this.text);
  }

  /** Most controls. */
  holdsOneText(element) {
    const only = firstChild(element);
    return only !== null && nodeType(only) === 3 && !nextSibling(only) && !shadowOf(element) && !hasAttr(element, 'aria-owns') &&
      (this.selector === '' || !matches(element, this.selector));
  }

  addText(node) {
    const data = dataOf(node);
    this.add(ligatureOf(node, data) ? ' ' : withoutGlyphs(data), node);
  }

  /** Adds the text of a node or element. */
  add(text, at) {
    if (!text) return;
    if (this.last !== null && mayContinue(this.text, text) && isApart(this.last, at)) this.text += ' ';
    this.text += text;
    this.last = at;
  }

  visit(element, tag) {
    if (SKIPPED.has(tag) || element === this.without || this.naming.seen.has(element)) return;
    const style = getComputedStyle(element);
    if (!this.all && style.display === 'none') return;
    const bare = !hasAttributes(element);
    if (!bare && this.isLeftOut(element)) return;
    if (tag === 'br') return void (this.text += ' ');
    const name = this.ownName(element, tag, bare);
    if (name === null) return this.enter(element, style, bare ? '' : attr(element, 'title'));
    this.add(tag === 'img' || tag === 'input' || tag === 'svg' || isBlock(style) ? ` ${name} ` : name, element);
  }

  /** What assistive technology does not get, and the menu that a widget opens. */
  isLeftOut(element) {
    if (!this.all && !this.naming.loose && attr(element, 'aria-hidden') === 'true') return true;
    if (!WIDGETS.has(this.role)) return false;
    const role = attr(element, 'role');
    return POPUPS.has(role) || (role === 'group' && this.role === 'treeitem');
  }

  /** The name that replaces the content of a descendant; null if its content counts. */
  ownName(element, tag, bare) {
    if (!bare && tag !== 'slot') {
      const label = labelledBy(element, this.naming);
      if (label) return label;
      const value = this.embeds ? embeddedValue(element, tag) : null;
      if (value !== null) return value;
      const stated = clean(attr(element, 'aria-label'));
      if (stated) return stated;
    }
    switch (tag) {
      case 'img':
        return isPresentational(element) ? '' : clean(attr(element, 'alt') || attr(element, 'title'));
      case 'input':
        return inputName(element);
      case 'select':
        return this.embeds ? embeddedValue(element, tag) : '';
      case 'textarea':
        return '';
      case 'svg':
        return svgTitle(element) || null;
      default:
        return null;
    }
  }

  /** Adds the content of an element, or its `title` if there is none. */
  enter(element, style, title) {
    const block = isBlock(style);
    if (block) this.text += ' ';
    const shown = this.all || style.visibility === 'visible';
    const from = this.text.length;
    const owned = hasAttr(element, 'aria-owns') ? this.ownedBy(element) : NO_ELEMENTS;
    const words = shown && this.selector !== '' && matches(element, this.selector);
    if (words) this.add(pseudoText(element, '::before'), element);
    if (block || words || title) {
      this.stack.push(() => {
        if (words) this.add(pseudoText(element, '::after'), element);
        if (title && !this.text.slice(from).trim()) this.text += ` ${title} `;
        if (block) this.text += ' ';
      });
    }
    for (let i = owned.length - 1; i >= 0; i--) this.stack.push(() => this.enter(owned[i], getComputedStyle(owned[i]), ''));
    const children = flatChildren(element);
    for (let i = children.length - 1; i >= 0; i--) if (shown || nodeType(children[i]) === 1) this.stack.push(children[i]);
  }

  /** Elements that aria-owns adds at the end; they are left out at their own place. */
  ownedBy(element) {
    const owned = referenced(element, attr(element, 'aria-owns').trim()).filter((one) => !this.naming.seen.has(one) &&
      !contains(one, element) && isLaidOut(one) && attr(one, 'aria-hidden') !== 'true');
    for (const one of owned) this.naming.seen.add(one);
    return owned;
  }
}

const NO_ELEMENTS = [];

/** Whether a box ends the words around it. */
const isBlock = ({ display }) => display !== 'inline' && display !== 'contents' && !display.startsWith('inline-');

/** Whether `text` would run into the word before it. */
const mayContinue = (before, text) => before.at(-1) > ' ' && text[0] > ' ' && /^[\p{L}\p{N}\p{Sc}([{"“]/u.test(text);

/** Whether margins, inline blocks or drawn elements between two pieces of one line keep their words apart. */
function isApart(before, after) {
  if (before === after) return false;
  let [left, right] = [null, null]; // the largest elements that hold only one of the two
  for (let node = elementOf(before); node && !contains(node, after); left = node, node = flatUp(node)) {
    const style = getComputedStyle(node);
    if (isBlock(style) || keepsApart(node, style, 'End')) return true;
  }
  for (let node = elementOf(after); node && !contains(node, before); right = node, node = flatUp(node)) {
    const style = getComputedStyle(node);
    if (isBlock(style) || keepsApart(node, style, 'Start')) return true;
  }
  for (let node = nextSibling(left ?? before); node && node !== (right ?? after); node = nextSibling(node)) {
    if (nodeType(node) === 1 && offsetWidth(node) > 1) return true; // an icon
  }
  return false;
}

const elementOf = (node) => (nodeType(node) === 1 ? node : textSlotOf(node) ?? flatParent(node));
const keepsApart = (element, style, side) =>
  style.display === 'inline' ? gapOf(style, side) >= WORD_GAP * parseFloat(style.fontSize) : style.display !== 'contents' && !isLetter(element);

/** CSS pixels. */
const gapOf = (style, side) => parseFloat(style['marginInline' + side]) + parseFloat(style['paddingInline' + side]) +
  parseFloat(style[`borderInline${side}Width`]);

/** An inline block with one letter, of a word that is animated letter by letter. */
function isLetter(element) {
  const only = firstChild(element);
  return only !== null && nodeType(only) === 3 && !nextSibling(only) && dataOf(only).trim().length === 1;
}
