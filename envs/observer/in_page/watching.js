// Watches a document as long as it is open: what changed since a mark, and what is still at work.
// It adds no listener for input: listeners of this world are listed among those of the page.

const KEPT_RECORDS = 400; // nodes and attributes kept since the mark; beyond that the text counts as changed
const READ_FIELDS = 2000;
const NOISE_GAP = 150; // ms between two changes without an action, from which on a node counts as changing by itself
const MARKED_ON = 1500; // ms for which a mark stays after the page was quiet
const SCROLLED_BEFORE = 40; // ms after the mark in which a box may still report that it was scrolled before
const WEAK_SIGN = 1000; // ms for which a disabled button or a text like "Searching…" is waited for
const WORKING = /(?:^|[-_\s])(?:loading|loader|spinner|spinning|skeleton|shimmer|throbber|busy)(?:[-_\s]|$)/i;
const MAY_WORK = '[aria-busy=true],[role=progressbar],progress,[class*=load i],[class*=spin i],[class*=skeleton i],' +
  '[class*=shimmer i],[class*=throbber i],[class*=busy i]';
const HOLDS_CONTROLS = 'a[href],button,input,select,textarea';
const CONTENT = `${HOLDS_CONTROLS},img,svg,canvas,video,iframe`;
const UNDRAWN = new Set(['script', 'style', 'link', 'meta', 'template', 'noscript', 'title', 'base']);
const DRAWN_BY_SCRIPTS = 'canvas,video,object,embed';
const PRESSED_FOCUS = 'a,button,summary,label,[role=button],[role=link],[role=tab],[role=menuitem],' +
  'input:is([type=button],[type=submit],[type=reset],[type=image],[type=checkbox],[type=radio])';
const MOVES = new Set(['opacity', 'transform', 'height', 'max-height', 'visibility', 'display', 'left', 'top', 'translate']);

let watcher = null;
const watchedRoots = new WeakSet();
const changeListeners = new Set();
const lastNoise = new WeakMap(); // node → time of its first change without an action
const noisy = new WeakSet();
let marked = null; // what is kept since the mark; null while no action runs
let isNewDocument = true; // nothing was marked yet: everything in it counts as new

const everything = {
  subtree: true, childList: true, characterData: true, characterDataOldValue: true, attributes: true, attributeOldValue: true,
};

/** Begins to watch the document. */
function watchPage() {
  if (watcher) return;
  watcher = new MutationObserver(noteRecords);
  listen(document, 'scroll', (event) => {
    if (marked && event.target !== document) marked.scrolled ||= performance.now() - marked.at > SCROLLED_BEFORE;
  }, true);
  if (isSecureContext && navigator.clipboard) listen(navigator.clipboard, 'clipboardchange', () => marked && (marked.copied = true));
  watchRoot(document);
}

function watchRoot(root) {
  if (!watchedRoots.has(root)) watcher.observe(root, everything);
  watchedRoots.add(root);
}

/** Watches the frames of the same origin and the open shadow roots as well. */
function watchInnerRoots() {
  const roots = [document];
  for (let root = roots.pop(); root; root = roots.pop()) {
    watchRoot(root);
    for (const element of allIn(root, '*')) {
      const inner = openRoot(element);
      if (inner) roots.push(inner);
    }
    for (const frame of allIn(root, 'iframe,frame')) {
      const inner = innerDocument(frame);
      if (inner) roots.push(inner);
    }
  }
}


function innerDocument(element) {
  try {
    return frameDocument(element) ?? null;
  } catch {
    return null;
  }
}

function noteRecords(records) {
  let beyondStyle = false;
  for (const record of records) {
    beyondStyle ||= record.type !== 'attributes' || record.attributeName !== 'style';
    if (!marked) noteNoise(record.target);
    else if (!noisy.has(record.target)) keepRecord(record);
  }
  for (const listener of [...changeListeners]) listener(beyondStyle);
}

/** A node that changes twice while no action runs is a clock, an animation or the like. */
function noteNoise(node) {
  const now = performance.now();
  const first = lastNoise.get(node);
  if (first === undefined) lastNoise.set(node, now);
  else if (now - first > NOISE_GAP) noisy.add(node);
}

function keepRecord(record) {
  const node = record.target;
  if (++marked.records > KEPT_RECORDS) return;
  if (record.type === 'attributes') {
    const old = marked.oldAttributes.get(node) ?? new Map();
    if (!old.has(record.attributeName)) old.set(record.attributeName, record.oldValue);
    marked.oldAttributes.set(node, old);
    marked.touched.add(node);
  } else if (record.type === 'characterData') {
    if (!marked.texts.has(node)) marked.texts.set(node, record.oldValue);
    marked.touched.add(parentNode(node));
  } else {
    for (const one of record.removedNodes) if (!marked.added.delete(one)) marked.removed.add(one);
    for (const one of record.addedNodes) {
      if (!marked.removed.delete(one)) marked.added.add(one);
      marked.touched.add(nodeType(one) === 1 ? one : node);
    }
  }
}

/** The deepest element at a point, in open shadow roots too; a frame stands for its content. */
function pointedAt(x, y) {
  let hit = elementAt(document, x, y);
  for (let root = hit && openRoot(hit); root; root = openRoot(hit)) {
    const inner = elementAt(root, x, y);
    if (!inner || inner === hit) break;
    hit = inner;
  }
  return hit;
}

/** Begins an action, at a point where it is the pointer's: changes are kept from now on. */
function markPage(point) {
  clearTimeout(unmarking);
  watchPage();
  watchInnerRoots();
  isNewDocument = false;
  marked = {
    records: 0, oldAttributes: new Map(), texts: new Map(), added: new Set(), removed: new Set(), touched: new Set(),
    at: performance.now(), view: [scrollX, scrollY], scrolled: false, copied: false, focused: deepFocus(), fields: fieldStates(),
    pointed: point && pointedAt(...point),
  };
}

/** Ends an action: later changes are the page's own. */
const unmarkPage = () => {
  marked = null;
};
let unmarking;
/** The same, unless the page is asked again soon, because it may react late. */
const unmarkLater = () => {
  unmarking = setTimeout(unmarkPage, MARKED_ON);
};

function deepFocus() {
  let focused = activeOf(document);
  for (let root = focused && (openRoot(focused) ?? innerDocument(focused)); root && activeOf(root); ) {
    focused = activeOf(root);
    root = openRoot(focused) ?? innerDocument(focused);
  }
  return focused;
}

/** Values and states of the document's fields. */
function fieldStates() {
  const states = new Map();
  let count = 0;
  for (const field of documentQueryAll(document, 'input,select,textarea')) {
    if (++count > READ_FIELDS) break;
    const chosen = htmlTag(field) === 'select' ? [...chosenOf(field)].map(indexOf).join() : '';
    states.set(field, `${isChecked(field) ?? ''}${isIndeterminate(field) ?? ''}${chosen} ${valueOf(field) ?? ''}`);
  }
  return states;
}

const hasContent = (node) => {
  if (nodeType(node) === 3) return dataOf(node).trim() !== '';
  if (nodeType(node) !== 1 || UNDRAWN.has(localName(node))) return false;
  return textContent(node).trim() !== '' || matches(node, CONTENT) || queryFirst(node, CONTENT) !== null;
};

/** Whether attributes that still differ could change what is drawn; `counts` selects elements. */
function restyled(counts = () => true) {
  for (const [element, old] of marked.oldAttributes) {
    if (!isConnected(element) || !counts(element)) continue;
    for (const [name, value] of old) {
      const [now, empty] = [getAttribute.call(element, name), name === 'class' || name === 'style' ? '' : null];
      if ((now ?? empty) !== (value ?? empty)) return true;
    }
  }
  return false;
}

const hasScrolled = () => marked.scrolled || marked.view[0] !== scrollX || marked.view[1] !== scrollY;

function rewritten() {
  if (marked.records > KEPT_RECORDS) return true;
  for (const [node, old] of marked.texts) if (isConnected(node) && dataOf(node) !== old) return true;
  for (const node of marked.added) if (isConnected(node) && hasContent(node)) return true;
  for (const node of marked.removed) if (!isConnected(node) && hasContent(node)) return true;
  return false;
}

/** Whether the focus moved, other than onto what was clicked or away from everything. */
function refocused(byPointer) {
  const now = deepFocus();
  if (now === marked.focused) return false;
  if (!byPointer || !now) return true;
  const tag = localName(now);
  return tag !== 'body' && tag !== 'html' && !matches(now, PRESSED_FOCUS);
}

function refilled() {
  const now = fieldStates();
  for (const [field, state] of marked.fields) if (now.has(field) && now.get(field) !== state) return true;
  return false;
}

/**
 * What changed since the mark: 'yes' for anything but text, 'text' where the document was rewritten, which may have left
 * its text as it was, 'no', or '' for a document that was not marked.
 */
function changeSinceMark(byPointer) {
  if (!marked) return '';
  const drawn = marked.pointed;
  if (drawn && matches(drawn, DRAWN_BY_SCRIPTS)) return 'yes'; // what a script draws cannot be read
  if (hasScrolled() || marked.copied || refocused(byPointer) || refilled() || restyled()) return 'yes';
  return rewritten() || (drawn && matches(drawn, 'iframe,frame')) ? 'text' : 'no';
}

/** Whether new content shows beyond the control that was used, or a field, the scroll position or the clipboard changed. */
function isAnswered() {
  if (!marked || marked.records > KEPT_RECORDS || marked.copied || hasScrolled() || refilled()) return true;
  const own = marked.pointed ?? marked.focused;
  const beyond = (node) => !own || !(contains(own, node) || contains(node, own));
  for (const [node, old] of marked.texts) if (isConnected(node) && dataOf(node) !== old && hasContent(node) && beyond(node)) return true;
  for (const node of marked.added) if (isConnected(node) && hasContent(node) && beyond(node)) return true;
  return restyled(beyond);
}

const isSeen = (element) => {
  const box = boxOf(element);
  return box.width >= 1 && box.height >= 1 && getComputedStyle(element).visibility === 'visible';
};

/** The mark-up of an element, by which it is recognised on the next page. */
const signOf = (element) => `${localName(element)}.${attr(element, 'class').trim()}#${attr(element, 'id')}`.slice(0, 200);

/** Whether an element says that the page is at work: by ARIA, as a progress bar, or as a spinner or skeleton. */
function saysBusy(element, spins) {
  if (!isConnected(element) || !isSeen(element)) return false;
  if (attr(element, 'aria-busy') === 'true') return true;
  const bar = attr(element, 'role') === 'progressbar' || htmlTag(element) === 'progress';
  if (bar) return !hasAttr(element, 'value') && !hasAttr(element, 'aria-valuenow');
  if (!spins.has(element) && !WORKING.test(attr(element, 'class'))) return false;
  return queryFirst(element, HOLDS_CONTROLS) === null && textContent(element).trim().length <= 40;
}

/** Elements with an animation that does not end, and whether an animation that moves a touched element still runs. */
function runningAnimations() {
  const spins = new Set();
  let moves = false;
  for (const animation of animationsOf(document)) {
    const timing = animation.playState === 'running' && animation.effect?.getComputedTiming();
    const element = timing && animation.effect.target;
    if (!element || !isTouched(element)) continue;
    if (timing.endTime === Infinity) spins.add(element);
    else moves ||= timing.endTime <= WEAK_SIGN && MOVES.has(animation.transitionProperty ?? 'opacity');
  }
  return { spins, moves };
}

function isTouched(element) {
  for (let node = element, up = 0; node && up < 5; node = parentNode(node), up++) if (marked.touched.has(node)) return true;
  return false;
}

/** Elements that appeared or changed since the mark and may say that the page is at work. */
function* mayWork() {
  if (isNewDocument) yield* documentQueryAll(document, MAY_WORK);
  if (!marked) return;
  for (const node of marked.touched) {
    if (!node || nodeType(node) !== 1 || !isConnected(node)) continue;
    yield node;
    if (marked.added.has(node)) yield* queryAll(node, MAY_WORK);
  }
}

/** A sign of less weight: a button that was disabled meanwhile, or a short text that ends with an ellipsis. */
function saysWait(element) {
  if (htmlTag(element) === 'button' && isDisabled(element)) return marked.oldAttributes.get(element)?.get('disabled') === null;
  const text = textContent(element).trim();
  return text.length <= 30 && /(?:…|\.\.\.)$/.test(text) && queryFirst(element, HOLDS_CONTROLS) === null && isSeen(element);
}

/** What says that the page is still at work after `ms`, as marks of mark-up; those in `ignored` do not count. */
function atWork(ms, ignored) {
  if (!isNewDocument && (!marked || !marked.touched.size)) return [];
  const { spins, moves } = marked ? runningAnimations() : { spins: new Set(), moves: false };
  const signs = new Set(moves && ms < WEAK_SIGN ? ['moves'] : []);
  let examined = 0;
  for (const element of [...spins, ...mayWork()]) {
    if (++examined > KEPT_RECORDS) break;
    if (saysBusy(element, spins) || (ms < WEAK_SIGN && marked && saysWait(element))) signs.add(signOf(element));
  }
  return [...signs].filter((sign) => !ignored.includes(sign));
}
