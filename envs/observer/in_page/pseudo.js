// Words that CSS draws before or after the content of an element.
// The computed style of a pseudo-element costs as much as the depth of its element. It is read only for elements that
// match a rule of the page whose `content` has words. Style sheets of other origins cannot be read; they are left out.

const MAX_RULES = 3000; // rules that are examined in one document or shadow root
const WORDS = /[\p{L}\p{N}]/u;
const GENERATED = /::?(?:before|after)\b/;
const NO_SHEETS = [];
const pseudoRules = new WeakMap(); // document or shadow root → { key, selector } of the rules found there
let selectorsNow = new WeakMap(); // the same for the current observation, in which the rules are not counted again

/** Has the rules of the page counted again. */
const forgetSelectors = () => void (selectorsNow = new WeakMap());

/** A selector of the elements before or after which some rule of the element's document may draw words; '' for none. */
function selectorOfWords(element) {
  const root = getRootNode(element);
  let selector = selectorsNow.get(root);
  if (selector === undefined) selectorsNow.set(root, (selector = readSelector(root)));
  return selector;
}

function readSelector(root) {
  const sheets = sheetsOf(root) ?? NO_SHEETS;
  const known = pseudoRules.get(root);
  let key = 0;
  for (let i = 0; i < sheets.length; i++) key += 1000003 * (rulesOf(sheets[i])?.length ?? 0) + 1;
  if (known && known.key === key) return known.selector;
  const found = [];
  const left = { rules: MAX_RULES };
  for (let i = 0; i < sheets.length; i++) collectRules(rulesOf(sheets[i]), found, left);
  const selector = found.join(',');
  const usable = attempt(() => selector === '' || (matches(rootElement(document), selector), true), false);
  pseudoRules.set(root, { key, selector: usable ? selector : '' });
  return usable ? selector : '';
}

/** The rules of a style sheet or a group of rules; null if the sheet is of another origin. */
const rulesOf = (group) => attempt(() => group.cssRules ?? null, null);

function collectRules(rules, found, left) {
  for (let i = 0; rules && i < rules.length && left.rules > 0; i++, left.rules--) {
    const entry = rules[i];
    const { selectorText } = entry;
    if (selectorText === undefined) collectRules(rulesOf(entry), found, left); // @media, @supports, @layer
    else if (GENERATED.test(selectorText) && drawsWords(entry.style.content)) found.push(...elementsOf(selectorText));
  }
}

const drawsWords = (content) => WORDS.test(withoutGlyphs(content.replace(/\b(?:none|normal|open-quote|close-quote|url\([^)]*\))/g, '')));

/** The selectors of the elements before and after which something is drawn. */
function elementsOf(selectorText) {
  const found = [];
  for (const one of selectorText.split(/,(?![^(]*\))/)) {
    if (GENERATED.test(one)) found.push(one.replace(/::?(?:before|after)\b.*$/, '').trim().replace(/[>+~\s]$/, '$& *') || '*');
  }
  return found;
}

/** The words of a pseudo-element or their alternative text (`content: "→" / "next"`). Signs are no words. */
function pseudoText(element, which) {
  const style = getComputedStyle(element, which);
  const { content } = style;
  if (content === 'none' || content === 'normal' || style.display === 'none' || style.visibility !== 'visible') return '';
  let text = '';
  let apart = style.display !== 'inline';
  for (const [part, string, name] of content.matchAll(/"((?:[^"\\]|\\.)*)"|attr\(([\w-]+)\)|\//g)) {
    if (part === '/') [text, apart] = ['', true];
    else text += name ? attr(element, name) : string.replace(/\\(.)/g, '$1');
  }
  text = withoutGlyphs(text);
  if (!WORDS.test(text)) return '';
  return `${apart || gapOf(style, 'Start') > 0 ? ' ' : ''}${text}${apart || gapOf(style, 'End') > 0 ? ' ' : ''}`;
}
