// Icons that are written as text: ligatures ("account_balance_wallet" in an icon font) and private-use characters.
// They are no text of the page. An icon is shown as a hint where nothing else names a control.

const PRIVATE_USE = /[\ue000-\uf8ff]|[\udb80-\udbff][\udc00-\udfff]/g;
const ICON_FONT = /icon|symbol|glyph|awesome|fontello|icomoon|ligature|mdl2|entypo|feather|remix|tabler|lucide|phosphor/i;
const LIGATURE = /^[a-z][a-z0-9_]{1,39}$/;
/** A class that selects one icon of a set: `fa-trash`, `glyphicon-plus`, `mdi-account`. */
const ICON_CLASS = new RegExp('^(?!ui-icon-(?:triangle|gripsmall))(?:fa|fas|far|bi|icon|icons|icofont|glyphicon|mdi|ri|ti|la|uil|bx|bxs|codicon|octicon|oi|pi|feather|lucide|tabler-icon|' +
  'ion|ion-md|ion-ios|material-icons?|el-icon|anticon|k-i|dashicons|typcn|wi|fi|cil|ph|svg-icon|icon-[a-z]+|[a-z]+-icon)-' +
  '(?!(?:icons?|solid|regular|light|thin|brands|fw|lg|xs|sm|[0-9]?x?l?|[1-9]x|spin|outlined?|filled|rounded|sharp|inverse|stack.*|rotate.*|flip.*|btn|button|only|left|right|wrapper|container)$)' +
  '([a-z][a-z0-9-]{1,30})$');

const withoutGlyphs = (text) => (/[\ue000-\uf8ff\udb80-\udbff]/.test(text) ? text.replace(PRIVATE_USE, ' ') : text);
const asWords = (name) => name.replace(/([a-z])([A-Z])/g, '$1 $2').replace(/[-_ ]+/g, ' ').trim().toLowerCase();

/** The words of an icon that an icon font draws for this text; '' for any other text. */
function ligatureOf(node, data) {
  if (data.length > 60 || !LIGATURE.test(data.trim())) return '';
  const word = data.trim();
  const holder = flatParent(node);
  if (!holder || nodeType(holder) !== 1 || !mayDrawIcon(holder, node)) return '';
  const style = getComputedStyle(holder);
  if (ICON_FONT.test(style.fontFamily.split(',', 1)[0])) return asWords(word);
  if (!word.includes('_')) return '';
  return style.fontFeatureSettings.includes('liga') || isOneGlyph(node, word, parseFloat(style.fontSize)) ? asWords(word) : '';
}

/** Icons have an element of their own; asking each word of a page for its font would cost too much. */
const mayDrawIcon = (holder, node) => firstChild(holder) === node && !nextSibling(node) &&
  (hasAttributes(holder) || localName(holder) === 'i' || localName(holder).includes('-'));

/** Whether a word is drawn about as wide as one character. */
function isOneGlyph(node, word, size) {
  if (word.length < 5) return false;
  ruler.selectNodeContents(node);
  const { width } = ruler.getBoundingClientRect();
  ruler.selectNodeContents(document);
  ruler.collapse(true);
  return width > 0 && width <= 1.5 * size;
}

/** The icon that an element draws, by its class, attributes or address; '' if they do not tell. */
function iconOf(element, tag) {
  if (!hasAttributes(element)) return '';
  for (const name of attr(element, 'class').split(/\s+/, 12)) {
    const word = ICON_CLASS.exec(name)?.[1];
    if (word) return asWords(word);
  }
  const data = attr(element, 'data-icon') || attr(element, 'data-lucide') || attr(element, 'data-feather');
  if (/^[a-z][a-z0-9_-]{1,30}$/.test(data)) return asWords(data);
  if (tag === 'svg') return asWords(/^([A-Z][A-Za-z]{1,30})Icon$/.exec(attr(element, 'data-testid'))?.[1] ?? '');
  if (tag === 'use') return stemOf(/#([^#]*)$/.exec(attr(element, 'href') || attr(element, 'xlink:href'))?.[1] ?? '');
  if (tag === 'img' && !attr(element, 'alt')) return stemOf(pathOf(attr(element, 'src')).split('/').pop() ?? '');
  return '';
}

/** The words of a file or symbol name, `icon-trash.svg` or `#trash`; '' for a generated name. */
function stemOf(name) {
  const stem = name.replace(/\.[a-z]{2,4}$/i, '').replace(/^(?:icons?|svg|img|ic)[-_.]|[-_.](?:icons?|svg)$/gi, '');
  return /^[a-z]+(?:[-_][a-z]+){0,3}$/i.test(stem) && stem.length > 2 && stem.length <= 30 ? asWords(stem) : '';
}

const PICTURES = ['content', 'backgroundImage', 'maskImage'];
/** File names that say nothing about one icon. */
const NO_ICON = /^(?:(?:css )?sprites?|images?|img|icons?|bg|back(?:ground)?|texture|pattern|gradient|shadow|blank|spacer|pixel|transparent|empty|button|btn)\b/;

/** States have pictures of their own; a name must outlast them. */
const STATE_WORDS = /(?: (?:hover(?:ed)?|active|focus(?:ed)?|pressed|clicked|selected|disabled|normal|default))+$/;

/** The icon that the style sheets draw on an element, by the name of its file; '' if that does not tell. */
function styledIconOf(element) {
  for (const pseudo of [null, '::before', '::after']) {
    const style = getComputedStyle(element, pseudo);
    for (const property of PICTURES) {
      const file = /^url\("(?!data:)([^"]*)"\)/.exec(style[property] ?? '')?.[1];
      const word = file ? stemOf(pathOf(file).split('/').pop() ?? '').replace(STATE_WORDS, '') : '';
      if (word && !NO_ICON.test(word)) return word;
    }
  }
  return '';
}

/** The first icon inside an element or of the element itself; '' if none tells what it is. */
const iconIn = (element, tag) => firstIcon(element, tag, iconOf, ligatureOf);
/** The same for icons that style sheets draw. */
const styledIconIn = (element, tag) => firstIcon(element, tag, styledIconOf);

function firstIcon(element, tag, ofElement, ofText = () => '') {
  const own = ofElement(element, tag);
  if (own) return own;
  const stack = flatChildren(element).reverse();
  for (let visited = 0; stack.length && visited < ICON_NODES; visited++) {
    const node = stack.pop();
    const type = nodeType(node);
    const word = type === 3 ? ofText(node, dataOf(node)) : type === 1 ? ofElement(node, tagOf(node)) : '';
    if (word) return word;
    if (type === 1) stack.push(...flatChildren(node).reverse());
  }
  return '';
}
const ICON_NODES = 30; // nodes in which an icon is looked for
