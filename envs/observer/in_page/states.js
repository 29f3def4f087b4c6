// States that neither ARIA nor the element itself tells, and icons that style sheets draw: cues of a control, shown in
// parentheses after its states.
// In order of evidence: attributes by convention, class words, one of several siblings styled unlike the others, and an
// appearance that changed by a press. All but the first are guesses, marked with `?`. A cue never enters a name.

const CUE_ROLES = new Set('button link tab option menuitem menuitemcheckbox menuitemradio treeitem switch checkbox radio clickable'.split(' '));
const MAX_CUED = 1500; // controls examined in one observation
const MAX_INNER = 12; // elements examined inside a control
const MAX_OUTER = 3; // elements around a control that may carry its state
const MAX_APPEARANCES = 80; // computed appearances in one observation
const MAX_PRESSED = 200; // pressed controls whose place is remembered
const MAX_BASES = 200; // controls whose first appearance is remembered in one observation
const GROUP_MOST = 60; // members of a sibling group that are compared
const WHOLE_GROUP = [5, 12]; // size of a group whose appearances are all compared although no class differs

let firstAppearances = new WeakMap(); // element → its appearance and cues when it was first seen
let pressedAppearances = new Map(); // key of a pressed control → the same and its element, which a script may replace

/** Fills the cues of those `controls` that were not examined yet; returns whether there is a new cue. */
function readCues(observation, controls) {
  const fresh = controls.filter((control) => !control.examined).slice(0, MAX_CUED);
  if (!fresh.length) return false;
  const ancestors = fresh.map((control) => attempt(() => ancestorsOf(control.element), []));
  const counts = holdings(ancestors);
  const seen = [];
  for (let i = 0; i < fresh.length; i++) {
    const control = fresh[i];
    control.examined = true;
    if (!CUE_ROLES.has(control.role) || UNCUED_TAGS.has(control.tag)) continue;
    try {
      seen.push(examine(control, ancestors[i], observation, counts));
    } catch {
      continue; // it has no cues
    }
  }
  const groups = groupsOf(seen);
  for (const group of groups) attempt(() => settleGroup(group), null);
  const budget = { left: MAX_APPEARANCES, bases: MAX_BASES };
  for (const group of groups) attempt(() => findOdd(group, budget), null);
  for (const one of seen) attempt(() => conclude(one, budget), null);
  return seen.some((one) => one.control.cues.length > 0);
}

const UNCUED_TAGS = new Set(['input', 'select', 'textarea']); // they tell their state themselves

/** The nodes close around an element, from its parent on. */
function ancestorsOf(element) {
  const found = [];
  for (let outer = flatParent(element); outer && found.length <= MAX_OUTER; outer = flatParent(outer)) found.push(outer);
  return found;
}

/** The number of controls in each node that is close around a control. */
function holdings(ancestors) {
  const counts = new Map();
  for (const around of ancestors) for (const outer of around) counts.set(outer, (counts.get(outer) ?? 0) + 1);
  return counts;
}

/** Everything about a control that does not depend on other controls. */
function examine(control, ancestors, observation, counts) {
  const outer = outerOf(control.element, ancestors, observation, counts);
  const inner = innerOf(control.element, observation);
  const one = { control, ancestors, outer, inner, cues: new Map(), known: new Set(), caret: '', name: control.name.toLowerCase() };
  if (control.states.includes('disabled')) one.known.add('bar');
  if (control.tag === 'summary') one.known.add('fold');
  const parts = partsOf(one);
  for (const element of parts) if (hasAttributes(element)) declared(one, element);
  for (const element of parts) classWords(one, element);
  for (const element of inner) ligature(one, element);
  faint(one);
  return one;
}

/** The elements around a control that hold nothing else, and the row that holds no other control. */
function outerOf(element, ancestors, observation, counts) {
  const found = [];
  let bare = true;
  for (let i = 0; i < ancestors.length && i < MAX_OUTER; i++) {
    const [child, outer] = [i ? ancestors[i - 1] : element, ancestors[i]];
    if (nodeType(outer) !== 1 || counts.get(outer) !== 1 || observation.emitted.has(outer)) break;
    const tag = tagOf(outer);
    if (tag === 'body' || tag === 'form' || tag === 'main') break;
    bare = bare && holdsOnly(outer, child);
    if (bare || tag === 'li' || tag === 'tr') found.push(outer);
    else if (tag !== 'td') break;
    if (tag === 'li' || tag === 'tr') break;
  }
  return found;
}

function holdsOnly(outer, child) {
  let others = 0;
  for (let node = firstChild(outer); node; node = nextSibling(node)) {
    if (node === child) continue;
    if (++others > 8) return false;
    if (nodeType(node) === 3 ? /\S/.test(dataOf(node)) : nodeType(node) === 1 && !isBlank(node)) return false;
  }
  return true;
}

const isBlank = (element) => !firstChild(element) || !/\S/.test(textContent(element));

/** The elements inside a control that have no text or the whole text, which are icons, marks and wrappers. */
function innerOf(element, observation) {
  const found = [];
  if (!firstElement(element) && !shadowOf(element)) return found;
  const queue = [element];
  for (let i = 0; i < queue.length && found.length < MAX_INNER; i++) {
    const children = flatChildren(queue[i]);
    const only = children.filter((child) => nodeType(child) === 1 || (nodeType(child) === 3 && /\S/.test(dataOf(child)))).length === 1;
    for (const child of children) {
      if (nodeType(child) !== 1 || observation.emitted.has(child) || SKIPPED.has(localName(child))) continue;
      if (queue.length <= 2 * MAX_INNER) queue.push(child);
      if (isBlank(child) && !hasAttributes(child)) continue; // a ripple
      if ((only || isBlank(child) || isIcon(child)) && found.length < MAX_INNER) found.push(child);
    }
  }
  return found;
}

/** Whether the text of an element is drawn as an icon (a ligature). */
const isIcon = (element) => /^[a-z_0-9]{2,40}$/.test(textContent(element).trim()) && /icon|symbol/i.test(attr(element, 'class') + getComputedStyle(element).fontFamily);

function add(one, family, cue) {
  if (!one.known.has(family) && !one.cues.has(family)) one.cues.set(family, cue);
}

/** Attributes that tell a state: of ARIA, which on the control itself are its states already, and by convention. */
function declared(one, element) {
  const self = element === one.control.element;
  const custom = localName(element).includes('-');
  for (const name of attributeNames(element)) {
    if (name.startsWith('aria-')) declaredByAria(one, element, name.slice(5), self);
    else if (name === 'data-state' || (custom && name === 'state')) declaredByValue(one, element, name);
    else if (name === 'disabled') addCue(one, 'disabled');
    else if (custom || name.startsWith('data-')) declaredByName(one, element, name, custom);
  }
  if (htmlTag(element) !== 'input' || !['checkbox', 'radio'].includes(typeOf(element))) return;
  if (isChecked(element)) addCue(one, 'checked');
  one.known.add('choice');
}

const ARIA_CUES = new Set('checked pressed selected current expanded disabled'.split(' '));
function declaredByAria(one, element, name, self) {
  const value = ARIA_CUES.has(name) ? attr(element, 'aria-' + name) : '';
  if (!value || value === 'undefined') return;
  if (value !== 'false' && (!self || name === 'current')) add(one, FAMILY(name), name);
  if (value === 'false' && !self && name === 'expanded') add(one, 'fold', 'collapsed');
  if (value !== 'false' || name !== 'current') one.known.add(FAMILY(name));
}

/** In a table row `open` and `closed` are data. */
function declaredByValue(one, element, name) {
  const cue = STATE_VALUES[attr(element, name).toLowerCase()];
  if (FAMILY(cue) !== 'fold' || htmlTag(element) !== 'tr') addCue(one, cue);
}

function declaredByName(one, element, name, custom) {
  const cue = ATTRIBUTE_CUES[name.startsWith('data-is-') ? name.slice(8) : name.startsWith('data-') ? name.slice(5) : name];
  if (!cue) return;
  const value = attr(element, name).toLowerCase();
  if (/^(?:|true|1|yes|on)$/.test(value) || (custom && value === name)) addCue(one, cue);
}

function addCue(one, cue) {
  if (!cue) return;
  add(one, FAMILY(cue), cue);
  one.known.add(FAMILY(cue));
}

function classWords(one, element) {
  for (const token of tokensOf(element)) {
    const { segments, state, drawn, caret } = meaningOf(token);
    if (state && isState(one, token, segments, state)) add(one, state.family, state.cue + '?');
    if ((drawn || caret) && (element !== one.control.element || !one.name || isBlank(element))) {
      if (drawn) add(one, 'choice', drawn + '?');
      if (caret) one.caret = caret;
    }
  }
}

function ligature(one, element) {
  if (isBlank(element) || !isIcon(element)) return;
  const text = textContent(element).trim();
  if (LIGATURES[text]) add(one, 'choice', LIGATURES[text] + '?');
  one.caret = LIGATURE_CARETS[text] ?? one.caret;
}

/** A faint control that the pointer cannot use appears disabled. */
function faint(one) {
  if (one.control.opacity === '1' || one.known.has('bar') || one.cues.has('bar')) return;
  const style = getComputedStyle(one.control.element);
  if (Number(style.opacity) < 0.75 && (style.cursor === 'not-allowed' || style.pointerEvents === 'none')) add(one, 'bar', 'disabled?');
}

/** Controls in the same place of siblings: the nearest element around them that holds three or more of a kind. */
function groupsOf(seen) {
  const kinds = new Map();
  for (const one of seen) {
    let path = one.control.role;
    one.places = [];
    let unit = one.control.element;
    for (const outer of one.ancestors) {
      if (nodeType(outer) !== 1) break;
      path += ' ' + localName(unit);
      let paths = kinds.get(outer);
      if (!paths) kinds.set(outer, (paths = new Map()));
      let members = paths.get(path);
      if (!members) paths.set(path, (members = []));
      members.push(one);
      one.places.push({ unit, members });
      unit = outer;
    }
  }
  const groups = new Map();
  for (const one of seen) {
    const place = one.places.find(({ members }) => members.length > 1);
    if (!place || place.members.length < 3) continue;
    one.unit = place.unit;
    const group = groups.get(place.members);
    if (group) group.push(one);
    else groups.set(place.members, [one]);
  }
  const areApart = (group) => {
    const units = new Set(group.map((one) => one.unit));
    return units.size === group.length;
  };
  return [...groups.values()].filter((group) => group.length > 2 && areApart(group));
}

/** A word that every sibling has is a style; two directions of carets in a group are open and closed ones. */
function settleGroup(group) {
  const all = (cue) => group.every((one) => one.cues.get('choice') === cue);
  if (all('selected?')) for (const one of group) one.cues.delete('choice');
  const carets = new Set(group.map((one) => one.caret).filter(Boolean));
  const open = carets.has('right') && carets.has('down') ? 'down' : carets.has('down') && carets.has('up') ? 'up' : '';
  if (carets.size !== 2 || !open) return;
  for (const one of group) if (one.caret) add(one, 'fold', one.caret === open ? 'expanded?' : 'collapsed?');
}

/** Marks the only one of a group that is styled unlike all others, if a class or an inline style tells it apart. */
function findOdd(group, budget) {
  if (group.length > GROUP_MOST || group.some((one) => one.known.has('choice') || one.cues.has('choice'))) return;
  if (group.some((one) => hasAttr(one.unit, 'aria-sort') || hasAttr(one.control.element, 'aria-sort'))) return;
  const odd = apart(group);
  if (odd === undefined) return;
  const [least, most] = WHOLE_GROUP;
  if (odd) {
    const others = group.filter((one) => one !== odd.one);
    const sample = [others[0], others[others.length >> 1], others[others.length - 1]];
    if (budget.left < 4 || isOther(odd) || sample.some((one) => isBlank(one.control.element) !== isBlank(odd.one.control.element))) return;
    budget.left -= 4;
    const appearances = sample.map(appearanceOf);
    if (appearances.every((appearance) => appearance.text === appearances[0].text) && isPicked(odd.one, appearanceOf(odd.one), appearances[0])) odd.one.cues.set('choice', 'selected?');
  } else if (group.length >= least && group.length <= most && budget.left >= group.length) {
    budget.left -= group.length;
    findOddAppearance(group);
  }
}

/** Without a difference of classes only a sibling in the middle counts that neither pointer nor focus rests on. */
function findOddAppearance(group) {
  const appearances = group.map(appearanceOf);
  const counts = new Map();
  for (const { text } of appearances) counts.set(text, (counts.get(text) ?? 0) + 1);
  const at = appearances.findIndex(({ text }) => counts.get(text) === 1);
  if (counts.size !== 2 || at <= 0 || at === group.length - 1) return;
  const { unit } = group[at];
  if (matches(unit, ':hover, :focus, :focus-within') || ACTS.test(group[at].name)) return;
  if (isPicked(group[at], appearances[at], appearances[0])) group[at].cues.set('choice', 'selected?');
}

/** The only member whose classes or inline styles differ from those of all others; null if none, undefined if several do. */
function apart(group) {
  const declared = styleAttributes(group[0]);
  if (group.every((one, i) => !i || styleAttributes(one) === declared)) return null;
  const counts = new Map();
  const sets = group.map((one) => {
    const set = new Set(styling(one));
    for (const token of set) counts.set(token, (counts.get(token) ?? 0) + 1);
    return set;
  });
  const lacking = [...counts].filter(([, count]) => count === group.length - 1).map(([token]) => token);
  let found = null;
  for (let i = 0; i < group.length; i++) {
    const own = [...sets[i]].filter((token) => counts.get(token) === 1);
    const lacks = lacking.filter((token) => !sets[i].has(token));
    if (!own.length && !lacks.length) continue;
    if (found) return undefined;
    found = { one: group[i], tokens: [...own, ...lacks] };
  }
  return found;
}

const styleTokens = (element, where) => [...tokensOf(element), ...attr(element, 'style').split(';', 20).map((rule) => rule.trim()).filter(Boolean)]
  .map((token) => where + token.replace(/\d{3,}/g, '#'));
const STYLED_INNER = 4; // elements inside a control whose classes and inline styles count
const styling = (one) => [...pathOfUnit(one).flatMap((element, i) => styleTokens(element, `${i} `)), ...one.inner.slice(0, STYLED_INNER).flatMap((element) => styleTokens(element, '+ '))];

/** The attributes that `styling` reads, unparsed: members of most groups have the same ones. */
function styleAttributes(one) {
  let text = '';
  for (const element of pathOfUnit(one)) text += `${attr(element, 'class')}\n${attr(element, 'style')}\n`;
  for (let i = 0; i < one.inner.length && i < STYLED_INNER; i++) text += `\r${attr(one.inner[i], 'class')}\n${attr(one.inner[i], 'style')}`;
  return text;
}

/** The elements from a control to the sibling that holds it. */
function pathOfUnit(one) {
  const path = [one.control.element];
  while (path[path.length - 1] !== one.unit && path.length <= MAX_OUTER) path.push(one.ancestors[path.length - 1]);
  return path;
}

/** Whether the classes that tell a sibling apart name something else than a state. */
function isOther({ one, tokens }) {
  if (hasChanged(one)) return false;
  if (one.control.role !== 'tab' && one.control.role !== 'option' && ACTS.test(one.name)) return true;
  if (htmlTag(one.unit) === 'tr' || one.name.length > 60) return true; // colours of rows are data
  if (one.control.tag === 'button' && attr(one.control.element, 'type') === 'submit') return true;
  if (tokens.some((token) => /^\S+ (?:width|height|position|left|top|display|margin|padding|float)[a-z-]*:/.test(token))) return true;
  return tokens.some((token) => segmentsOf(token.slice(token.indexOf(' ') + 1)).some((word) => OTHER_WORDS.has(word) || PASSING_WORDS.has(word)));
}

const APPEARANCE = ['backgroundColor', 'color', 'fontWeight', 'borderColor', 'borderWidth', 'boxShadow', 'backgroundImage', 'textDecorationLine'];
const AROUND = ['content', 'backgroundColor', 'borderBottomColor'];

/** The computed appearance of a control and its unit. */
function appearanceOf(one) {
  const elements = one.unit === one.control.element ? [one.unit] : [one.unit, one.control.element];
  const styles = elements.map((element) => getComputedStyle(element));
  const values = styles.flatMap((style) => APPEARANCE.map((name) => style[name]));
  for (const pseudo of ['::before', '::after']) {
    const style = getComputedStyle(elements[0], pseudo);
    if (style.content !== 'none') values.push(...AROUND.map((name) => style[name]));
  }
  for (const element of one.inner.slice(0, 2)) {
    const style = getComputedStyle(element);
    values.push(style.backgroundColor, style.borderTopColor, style.opacity, style.color);
  }
  const opacity = Number(styles[0].opacity);
  return { text: values.join('|') + opacity, values, styled: styles.length, opacity };
}

/** An appearance without the text's colour and weight. */
const solidOf = ({ values, styled }) => values.filter((_, i) => i >= APPEARANCE.length * styled || ![1, 2].includes(i % APPEARANCE.length)).join('|');

/** A weaker appearance is no choice; a long row needs more than another colour or weight of its text (unread, overdue). */
function isPicked(one, appearance, other) {
  if (appearance.text === other.text || appearance.opacity < other.opacity) return false;
  if (one.cues.has('bar') || one.control.states.includes('disabled')) return false;
  return one.name.length <= 40 || solidOf(appearance) !== solidOf(other);
}

/** What may change with a state: classes, icons and attributes of a control and its parts. Most are never compared, so
 *  the text is parsed then: parts end with U+0001, the fields of a part with U+0002. */
function drawnNow(one) {
  let text = '';
  partsOf(one).forEach((element, i) => {
    text += attr(element, 'class');
    if (i) text += `\u0002${DRAWN_BY.map((name) => attr(element, name)).join('\u0002')}\u0002${iconText(element)}`;
    text += '\u0001';
  });
  return text;
}

/** Whether two texts of `drawnNow` differ in nothing but the order of classes, and classes that come and go. */
const isDrawnAlike = (before, now) => before === now || withoutPassing(before) === withoutPassing(now);
const withoutPassing = (text) => text.split('\u0001').map((part) => {
  const [classes, ...drawn] = part.split('\u0002');
  const lasting = classes.split(/\s+/, 40).filter((token) => token && !segmentsOf(token).some((word) => PASSING_WORDS.has(word)));
  return [...lasting.sort(), ...drawn].join(' ').trim();
}).filter((part) => part).join('\n');

const DRAWN_BY = ['src', 'd', 'href', 'xlink:href', 'fill', 'name', 'icon'];
const partsOf = (one) => [one.control.element, ...one.outer, ...one.inner];
const iconText = (element) => (!isBlank(element) && isIcon(element) ? textContent(element) : '');
const inlineStyles = (one) => partsOf(one).map((element) => attr(element, 'style')).filter((style) => style).join('\n');
const shownCues = (one) => [...one.cues.values(), ...one.control.states.filter((state) => state !== 'focused')].join(' ');

/** Whether a control was pressed and does not appear as before. Where no action of ours pressed it, pointer or focus tell;
 *  then inline styles do not count, which scripts set for the pointer. */
function hasChanged(one) {
  const { element } = one.control;
  const first = firstAppearance(one);
  if (!first) return false;
  if (first.pressed && first.styles !== inlineStyles(one)) return true;
  if ((!first.pressed && !first.reached && !matches(element, ':hover, :focus'))) return false;
  if (isDrawnAlike(first.drawn, drawnNow(one))) return false;
  return (first.reached = true);
}

/** Writes the cues of a control. One that appears unlike before its first press, without any cue of it, is `changed?`. */
function conclude(one, budget) {
  const { control } = one;
  const first = firstAppearance(one);
  if (!first && budget.bases-- > 0) remember(one);
  if (first && hasChanged(one) && first.shown === shownCues(one)) {
    const open = one.caret === 'up' || (one.caret === 'down' && first.caret !== 'up');
    if (one.caret && first.caret && first.caret !== one.caret) add(one, 'fold', open ? 'expanded?' : 'collapsed?');
    else one.cues.set('change', 'changed?');
  }
  control.cues = [...iconCue(control), ...one.cues.values()];
  control.examination = one;
}

/** The icon that style sheets draw on a control without a name. Names and keys leave it out: it is a guess. */
function iconCue(control) {
  const icon = control.name ? '' : styledIconIn(control.element, control.tag);
  return icon ? [`icon:${icon.replace(/ /g, '-')}?`] : [];
}

const remember = (one) => firstAppearances.set(one.control.element,
  { drawn: drawnNow(one), styles: inlineStyles(one), shown: shownCues(one), caret: one.caret, pressed: false, reached: false });

/** The first appearance of a control, or of a pressed one in its place that a script replaced. */
function firstAppearance({ control }) {
  const known = firstAppearances.get(control.element);
  if (known || !pressedAppearances.size) return known;
  const other = pressedAppearances.get(placeKey(control));
  if (!other || isConnected(other.element)) return undefined;
  firstAppearances.set(control.element, other.first);
  other.element = control.element;
  return other.first;
}

const placeKey = (control) => [control.frame, control.role, control.name, control.ordinal, digestOf(control)].join('\n');

/** Forgets the appearances of all controls: another episode begins in the same document. */
function forgetAppearances() {
  firstAppearances = new WeakMap();
  pressedAppearances = new Map();
}

/** Notes that an action presses a control now. */
function notePress(element) {
  const control = latest && latest.controls.find((other) => other.element === element);
  if (!control || !control.examination) return;
  if (!firstAppearances.has(element)) remember(control.examination);
  const first = firstAppearances.get(element);
  first.pressed = true;
  if (pressedAppearances.size < MAX_PRESSED) pressedAppearances.set(placeKey(control), { element, first });
}
