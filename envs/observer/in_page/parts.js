// Parts of a control that can be clicked independently of it: a link without an address in a clickable row, an icon with a
// pointer cursor or listener of its own, a button that shows only while the pointer is over its row.

/** Attributes by which a delegated listener finds its element, whatever their value. */
const CLICK_NAMES = /(^|[-:.@])(click|tap)(\.|$)|^(data-)?hx-(get|post|put|patch|delete)$/i;
/** Attributes of which only some values, or some elements, are meant for clicks. */
const ACTION_NAMES = new RegExp('^data-((bs-|turbo-|ui-|mdb-|uk-)?(action|toggle|dismiss|command|cmd|method|remote|href|url|target|' +
  'event|handler|act|op|close|trigger)|(bs-|v-)?on-?click.*)$', 'i');
const PLAIN_NAMES = /^(data-(v-|react|test|qa|cy|ga|gtm|track|analytics|n-|s-|svelte|sentry|radix|state|slot|tooltip|title|toggle$|target$)|_ng|ng-reflect)/i;
const NO_CLICK = /^(tooltip|popover|hover)$/i; // values of data-toggle that react to hover
const BUTTON_WORDS = /(^|\s)([\w-]*[-_])?(btn|button|iconbutton|clickable)(\s|$)/i;
const ACTION_WORDS = new Set(('edit pencil pen trash bin delete remove close times xmark dismiss clear add plus copy clone duplicate download ' +
  'upload share star favorite favourite like heart bookmark pin flag archive reply forward more menu ellipsis kebab dots options settings gear cog ' +
  'play preview eye lock unlock refresh retry undo restore rename mute block complete toggle collapse expand').split(' '));
const CLOSING_WORDS = new Set(['close', 'remove', 'delete', 'dismiss', 'clear', 'times', 'xmark', 'toggle', 'expand', 'collapse']);
const LEADING_WORDS = new Set(['checkbox', 'toggle', 'twisty', 'expander', 'favorite', 'favourite', 'bookmark']); // usual before the text
const PART_NAMES = ['title', 'aria-label', ...TOOLTIPS];
const ICON_TAGS = new Set(['svg', 'i', 'img', 'em', 'mat-icon', 'ion-icon', 'use']);
const ICON_SIDE = 56; // CSS pixels; a larger element is no icon
const FILLING = 0.7; // share of its control from which a part is the same thing
const INDEPENDENT = 'a,button,input,select,textarea,summary,svg,i,[role=button],[role=link],[role=menuitem],[role=checkbox],[tabindex],' +
  '[onclick],[title],[aria-label],[data-action],[jsaction],[data-tooltip],' +
  '[class*=icon],[class*=btn],[class*=button]';
const LISTS = new Set('ul ol table tbody thead tfoot dl menu'.split(' '));
const LIST_ROLES = new Set('list listbox rowgroup grid table tree treegrid menu tablist radiogroup'.split(' '));
const MENU = 'ul,ol,menu,[role=menu],[role=menuitem],[role=listbox],[role=option]';
const ARROW = /^[\u2190-\u21ff\u2304\u25a0-\u25ff\u276f\u203a\u00bb\u2b05-\u2b0d\u02c5]$/; // shows that the control around it opens
const CELLS = new Set(['td', 'th', 'tr', 'tbody', 'li', 'colgroup', 'label']);
const TABS = new Set(['tab', 'option', 'treeitem']);
const REVEALED = 6; // controls shown by one hover; more are only counted, as for the menus of a navigation bar
const LOOKED_UP = 6; // levels above a hidden element at which a hover listener counts

const hovering = new WeakSet(); // elements with a listener for the pointer coming over them

const wordsOfClass = (element) => attr(element, 'class').replace(/([a-z])([A-Z])/g, '$1 $2').toLowerCase().split(/[^a-z]+/);
const hasActionWord = (element, words = ACTION_WORDS) => wordsOfClass(element).some((word) => words.has(word));
/** Classes named for scripts rather than for styles. */
const hasScriptClass = (element) => /(^|\s)(js|j)-[a-z]/.test(attr(element, 'class'));
const isButtonLike = (element) => BUTTON_WORDS.test(attr(element, 'class'));

/** Whether attributes say that a click on the element does something; `certain` leaves out those that may mean others. */
function hasAction(element, certain) {
  return attributeNames(element).some((name) => {
    if (CLICK_NAMES.test(name)) return true;
    const value = attr(element, name);
    if (name === 'jsaction' || name === 'data-action') return certain ? /(^|[\s;])click(->|:)/.test(value) : value !== '';
    return !certain && ACTION_NAMES.test(name) && !NO_CLICK.test(value);
  });
}

/** A link without an address is there to be clicked, unless it is the target of a fragment. */
function isBareLink(element, tag) {
  if (tag !== 'a' || hasAttr(element, 'href')) return false;
  return attributeNames(element).some((name) => (name.startsWith('data-') && !PLAIN_NAMES.test(name)) || CLICK_NAMES.test(name));
}

/** Whether something small without a text of its own is drawn: an icon. An element that is hidden until a hover has no box. */
function isIconPart(element, tag, isHidden) {
  const box = boxOf(element);
  if (box.width > ICON_SIDE || box.height > ICON_SIDE || !(isHidden || (box.width >= 4 && box.height >= 4))) return false;
  return contentText(element, 20, true).length <= 2 || ICON_TAGS.has(tag) || /icon|symbol|glyph/i.test(attr(element, 'class'));
}

/** Whether a part is the whole of its control, so that a click on either is the same. */
function isWhole(element, control) {
  if (control.role !== 'clickable' || isButtonLike(control.element)) {
    const text = contentText(element, 60);
    if (text && text === control.name) return true;
  }
  const [part, whole] = [boxOf(element), boxOf(control.element)];
  return part.width * part.height >= FILLING * whole.width * whole.height && part.width > 0;
}

/** Whether an element in a control can be clicked on its own although it has no listener: by attributes, by a cursor or hover
 *  style of its own, or, as a guess, as an icon with a title or an action's name in its class. */
function isPart(element, tag, context, isHidden) {
  const { control } = context;
  if ((namespaceOf(element) === SVG && tag !== 'svg') || isWhole(element, control)) return false;
  if (getComputedStyle(element).pointerEvents === 'none') return false;
  if (isHidden && control.tag !== 'button' && isIconPart(element, tag, true)) return true;
  if (control.role !== 'clickable') {
    if (hasAction(element, false) || (isIconPart(element, tag, false) && hasScriptClass(element))) return true;
    return TABS.has(control.role) && isGuessed(element, tag, control, isHidden, CLOSING_WORDS);
  }
  if (tag === 'a' && !hasAttr(element, 'href')) return true;
  if (hasAction(element, false) || (isButtonLike(element) && !ARROW.test(contentText(element, 10)))) return true;
  if (CELLS.has(tag)) return false; // a style for all cells of a row says nothing about one
  if (fitsRule(element, 'cursor') || /cursor:\s*pointer/.test(attr(element, 'style'))) return true;
  return fitsRule(element, 'hovered') || isGuessed(element, tag, control, isHidden, ACTION_WORDS);
}

function isGuessed(element, tag, control, isHidden, words) {
  if (isButtonLike(control.element)) return false;
  if (!isIconPart(element, tag, isHidden)) return isNamedAction(element, words);
  if (hasScriptClass(element) || PART_NAMES.some((name) => attr(element, name).trim())) return true;
  if (tag === 'svg' && queryFirst(element, 'title')) return true;
  // The icon of a toggle (`toggle-on`) shows the state of the whole.
  if (hasActionWord(element, LEADING_WORDS) && !wordsOfClass(element).some((word) => word === 'on' || word === 'off')) return true;
  // An icon before the text illustrates it.
  return (hasActionWord(element, words) || words.has(ligatureWord(element))) && followsText(element, control.element);
}

/** Whether an element's text and class call the same action: <span class=delete>Delete</span>. */
function isNamedAction(element, words) {
  if (firstElement(element)) return false;
  const word = clean(textContent(element)).toLowerCase().split(' ')[0];
  return words.has(word) && wordsOfClass(element).some((one) => one === word || one === 'action' || one === 'link');
}

/** The word that an icon font draws as an icon; '' for other texts. */
const ligatureWord = (element) => (/icon|symbol/i.test(attr(element, 'class')) ? clean(textContent(element)).toLowerCase().split('_')[0] : '');

/** Whether text of the control comes before its part. */
function followsText(element, around) {
  for (let node = element; node && node !== around; node = flatParent(node)) {
    const parent = parentNode(node);
    for (let before = parent && firstChild(parent), seen = 0; before && before !== node && seen < 100; before = nextSibling(before), seen++) {
      if (clean(textContent(before) ?? '')) return true;
    }
  }
  return false;
}

/** A name for a part that has none: its tooltip, what its attributes call it, or the action in its class. */
function partName(element) {
  for (const name of ['data-tooltip', 'data-original-title', 'data-bs-original-title', 'data-title', 'data-action', 'data-command']) {
    const value = clean(attr(element, name));
    if (/^[\p{L}][\p{L}\p{Nd} _-]{0,60}$/u.test(value)) return value;
  }
  for (const node of [element, ...firstOf(queryAll(element, '*'), 5, (child) => child)]) {
    const words = wordsOfClass(node).filter((word) => ACTION_WORDS.has(word));
    if (words.length) return words.join(' ');
    const drawn = localName(node) === 'use' ? (attr(node, 'href') || attr(node, 'xlink:href')).split('#').pop() : '';
    if (/^[a-z][\w-]{0,40}$/i.test(drawn)) return drawn.replace(/^icon[-_]/i, '');
  }
  return '';
}

/** Whether the rows of a list are clickable rather than the list: its cursor is inherited by several rows of one kind. */
function isListOfRows(element, tag, role) {
  if (!LISTS.has(tag) && !LIST_ROLES.has(role)) return false;
  const first = firstElement(element);
  return first !== null && [...firstOf(queryAll(element, ':scope > *'), 3, localName)].filter((name) => name === localName(first)).length > 1;
}

const ROWS_READ = 40; // rows of a list that are compared
const CHOICE_CHARS = 60; // a longer row is a text, not a choice

/** Whether a listener around rows of text is there to find out which row was clicked: around the items of a list, or around
 *  siblings of one class that hold nothing but a short text. */
function listensForRows(element, tag) {
  if (namespaceOf(element) === SVG || attr(element, 'draggable') === 'true') return false;
  const rows = [];
  for (let node = firstChild(element); node && rows.length < ROWS_READ; node = nextSibling(node)) {
    if (nodeType(node) === 1) rows.push(node);
    else if (nodeType(node) === 3 && clean(dataOf(node))) return false;
  }
  const [kind, word] = [rows.length && localName(rows[0]), rows.length && wordsOfClass(rows[0])[0]];
  const isItem = (row) => {
    const text = localName(row) === kind ? clean(textContent(row)) : '';
    return text !== '' && text.length <= CHOICE_CHARS && (kind === 'li' || (firstElement(row) === null && word && wordsOfClass(row)[0] === word));
  };
  return rows.length > 1 && (kind !== 'li' || LISTS.has(tag)) && rows.every(isItem) && queryFirst(element, INDEPENDENT) === null;
}

/** Whether a listener around several controls is the row's own and not delegated for them: the row looks clickable, or rows
 *  beside it listen too. */
function hasOwnListener(element, style, role) {
  if (LISTS.has(tagOf(element)) || LIST_ROLES.has(role)) return false;
  if (style.cursor === 'pointer' || (hasAttr(element, 'tabindex') && tabIndexOf(element) >= 0)) return true;
  if (!['tr', 'li'].includes(tagOf(element)) && !wordsOfClass(element)[0]) return false;
  return [nextElement(element), previousElement(element)].some((other) =>
    other && listening.has(other) && localName(other) === localName(element) && wordsOfClass(other)[0] === wordsOfClass(element)[0]);
}

/** Whether a hidden element with parts shows while the pointer is over something around it, by a rule or by a listener. */
function showsOnHover(element, kind, context) {
  if (kind === 'size' ? growsOnHover(element) : fitsRule(element, kind)) return isInteractive(element);
  if (!context.visible || kind === 'size' || !isInteractive(element)) return false;
  if (matches(element, MENU) || queryFirst(element, MENU)) return false; // a menu may open by a click only
  let row = flatParent(element);
  while (row && nodeType(row) === 1 && !isDrawn(row)) row = flatParent(row);
  const box = row && nodeType(row) === 1 ? boxOf(row) : null;
  if (!box || box.height > innerHeight / 3) return false;
  let above = flatParent(element);
  for (let level = 0; above && nodeType(above) === 1 && level < LOOKED_UP; level++, above = flatParent(above)) {
    if (hovering.has(above)) return !isRootTag(above);
  }
  return false;
}

/** Whether a hover gives an element or a box around it its size or moves it into view. */
function growsOnHover(element) {
  for (let node = element, level = 0; node && nodeType(node) === 1 && level < 3; node = flatParent(node), level++) {
    if (fitsRule(node, 'size')) return true;
  }
  return false;
}

const isInteractive = (element) => listening.has(element) || matches(element, INDEPENDENT) || queryFirst(element, INDEPENDENT) !== null;
const countInteractive = (element) => firstOf(queryAll(element, 'a,button,input,select,[role=button],[role=menuitem],[onclick]'), 1000, (one) => one).length;
