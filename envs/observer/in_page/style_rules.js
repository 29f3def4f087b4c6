// Facts from style sheets that computed styles do not tell: which elements have a pointer cursor or a hover style of their
// own (not an inherited one), and which are hidden until the pointer is over an element around them. Sheets of another
// origin cannot be read; the elements that they style are found by the other rules only.

const MAX_SHEET_RULES = 20000; // per sheet
const SCAN_MS = 100; // per observation, after which no further sheet is begun; the next observation reads the rest
const MAX_SHEETS = 200; // per root
const MAX_SELECTORS = 2000; // of one kind, per root
/** Kinds of hiding, and whether a declared value ends it. */
const SHOWING = {
  display: (style) => style.display !== '' && style.display !== 'none',
  visibility: (style) => style.visibility !== '' && style.visibility !== 'hidden' && style.visibility !== 'collapse',
  opacity: (style) => style.opacity !== '' && parseFloat(style.opacity) !== 0,
  size: (style) => ['height', 'maxHeight', 'width', 'maxWidth', 'transform', 'scale', 'translate', 'clip', 'clipPath', 'left', 'right', 'top',
    'bottom', 'marginLeft', 'marginRight'].some((name) => style[name] && style[name] !== '0px'),
};
const HIDING = { display: 'none', visibility: 'hidden', opacity: '0' };
const HOVERED = /(?<!\\):hover(?![\w\\-])/g;
const NOT_HOVERED = /(?<!\\):not\(\s*:hover\s*\)/g;

const sheetFacts = new WeakMap(); // sheet → {count, facts}
const rootFacts = new WeakMap(); // document or shadow root → {scan, facts}
let scan = 0; // number of the observation
let scanMs = 0; // time that the observation has spent on reading sheets

const emptyFacts = () => ({ cursor: [], hovered: [], trigger: [], display: [], visibility: [], opacity: [], size: [] });

/** Combined selectors by kind for the style sheets of an element's root; '' where there is none. */
function factsFor(element) {
  const root = getRootNode(element);
  if (nodeType(root) !== 9 && !isShadowRoot(root)) return {};
  const known = rootFacts.get(root);
  if (known && known.scan === scan) return known.facts;
  const all = emptyFacts();
  const sheets = [sheetsOf(root), adoptedSheets(root)].flatMap((list) => firstOf(list, MAX_SHEETS, (sheet) => sheet));
  for (const sheet of sheets) {
    const facts = attempt(() => factsOfSheet(sheet), null);
    if (facts) for (const kind in all) all[kind].push(...facts[kind]);
  }
  const facts = {};
  for (const kind in all) facts[kind] = all[kind].slice(0, MAX_SELECTORS).join(', ');
  rootFacts.set(root, { scan, facts });
  return facts;
}

/** Starts an observation: each root's sheets are read again when they are first needed, those that grew only. */
function startScan() {
  scan++;
  scanMs = 0;
}

function factsOfSheet(sheet) {
  if (sheet.disabled) return null;
  const rules = sheet.cssRules; // throws for a sheet of another origin
  const known = sheetFacts.get(sheet);
  if (known && known.count === rules.length) return known.facts;
  if (scanMs > SCAN_MS) return known ? known.facts : null;
  const start = performance.now();
  const facts = emptyFacts();
  const left = { rules: MAX_SHEET_RULES };
  readRules(rules, '', facts, left);
  scanMs += performance.now() - start;
  sheetFacts.set(sheet, { count: rules.length, facts });
  return facts;
}

function readRules(rules, around, facts, left) {
  for (let i = 0; i < rules.length && left.rules-- > 0; i++) {
    const rule = rules[i];
    const selector = rule.selectorText === undefined ? around : withParent(rule.selectorText, around);
    if (rule.style && selector) readRule(selector, rule.style, facts);
    if (rule.media && /\bprint\b/.test(rule.media.mediaText)) continue;
    if (rule.cssRules && rule.cssRules.length) readRules(rule.cssRules, selector, facts, left);
  }
}

const withParent = (selector, around) => (around && selector.includes('&') ? selector.replaceAll('&', `:is(${around})`) : selector);

function readRule(text, style, facts) {
  const pointer = style.cursor === 'pointer';
  if (!pointer && !text.includes(':hover')) return;
  for (const selector of selectorsIn(text)) {
    const subject = selector.slice(subjectStart(selector));
    const bare = withoutHover(selector);
    if (subject.startsWith('*') || !isSelector(bare)) continue;
    if (pointer) facts.cursor.push(bare);
    if (bare !== selector) readHover(selector, subject, bare, style, facts);
  }
}

function readHover(selector, subject, bare, style, facts) {
  if (subject.search(HOVERED) >= 0 && !/:(is|where|has)\(/.test(subject)) facts.hovered.push(bare);
  const trigger = selector.match(/^(.*?)(?<!\\):hover(?![\w\\-])[^\s>+~]*\s*[+~]/);
  if (trigger && isSelector(trigger[1] || '*')) facts.trigger.push(trigger[1] || '*');
  const inverse = selector.search(NOT_HOVERED) >= 0;
  for (const kind in SHOWING) {
    if (inverse ? HIDING[kind] !== undefined && style[kind] === HIDING[kind] : SHOWING[kind](style)) facts[kind].push(bare);
  }
}

/** The selector that the element matches also while nothing is hovered. */
function withoutHover(selector) {
  return selector.replace(NOT_HOVERED, ':hover').replace(/(^|[\s>+~,(])(?<!\\):hover(?![\w\\-])/g, '$1*').replace(HOVERED, '');
}

const isSelector = (selector) => attempt(() => (matches(rootElement(document), selector), true), false);

/** The selectors of a list, divided at commas outside brackets. */
function selectorsIn(text) {
  if (!text.includes(',')) return [text];
  const parts = [];
  let [depth, from] = [0, 0];
  for (let i = 0; i < text.length; i++) {
    if (text[i] === '\\') i++;
    else if (text[i] === '(' || text[i] === '[') depth++;
    else if (text[i] === ')' || text[i] === ']') depth--;
    else if (text[i] === ',' && !depth) {
      parts.push(text.slice(from, i).trim());
      from = i + 1;
    }
  }
  parts.push(text.slice(from).trim());
  return parts;
}

/** Where the last compound of a selector starts. */
function subjectStart(selector) {
  let [depth, start] = [0, 0];
  for (let i = 0; i < selector.length; i++) {
    if (selector[i] === '\\') i++;
    else if (selector[i] === '(' || selector[i] === '[') depth++;
    else if (selector[i] === ')' || selector[i] === ']') depth--;
    else if (!depth && /[\s>+~]/.test(selector[i])) start = i + 1;
  }
  return start;
}

/** Whether an element matches a kind of facts of its root. */
function fitsRule(element, kind) {
  const selector = factsFor(element)[kind];
  return selector ? matches(element, selector) : false;
}
