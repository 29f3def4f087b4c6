// What using a control sets off: the form that a click sends, where a link leads, which page scripts hear of it.
// Decided from markup and listeners, never from names or text. Structure is read through the prototypes' own getters.

const PRESS = 1, CHANGE = 2, HOVER = 4, FORM = 8, FOCUS = 16, KEY = 32, ROUTE = 64, NAVIGATE = 128;
const ANY = 255; // the groups of envs/observer/listening.py
const LOOKED_INTO = 200; // elements examined inside one control; a larger one counts as heard by everything
const NOT_TYPED = new Set(['checkbox', 'radio', 'button', 'submit', 'reset', 'image', 'hidden']);
const FRAMES = new Set(['iframe', 'frame', 'object', 'embed']);
const CONTROLS = 'a[href],button,input,select,textarea';
const ROOT_CONTROLS = 20; // a child of the body that holds more, and most of the page's, is where an application listens
const PLAIN_ATTRIBUTES = new Set(('href class id title target rel hreflang type lang dir style tabindex name value ' +
  'accesskey alt coords shape download ping referrerpolicy itemprop form formaction formmethod action method enctype ' +
  'accept-charset autocomplete novalidate width height src disabled').split(' '));
const PLAIN_ROLES = new Set(['link', 'search']);

const hearing = new WeakMap(); // node → groups of the events that its listeners wait for
const shadowHears = new WeakMap(); // host → the same for its shadow trees, those that are not known otherwise too
let windowHears = 0; // the same for the windows of this process's documents

const hears = (node) => (hearing.get(node) ?? 0) | (nodeType(node) === 1 ? shadowHears.get(parentNode(node)) ?? 0 : 0);

/** Records who listens: `groups[i]` is that of `nodes[i]`, null where the node is gone. */
function adoptHearing(ofWindows, groups, ...nodes) {
  windowHears = ofWindows;
  nodes.forEach((node, i) => {
    if (!node) return;
    hearing.set(node, groups[i]);
    for (let host = hostOf(node); host; host = hostOf(host)) shadowHears.set(host, (shadowHears.get(host) ?? 0) | groups[i]);
  });
}

/** The host of the shadow root, open or closed, that a node stands in. */
function hostOf(node) {
  const root = getRootNode(node);
  return nodeType(root) === 11 ? rootHost(root) : null;
}

/** Where an event at `node` goes next: the slot, the shadow root's host or the parent. */
function eventParent(node) {
  if (nodeType(node) === 11) return rootHost(node);
  return (nodeType(node) === 1 ? slotOf(node) : null) ?? parentNode(node);
}

/** Where whole pages and applications listen: document, root, body, and the child of the body that holds the page. */
function isRoot(node) {
  if (nodeType(node) !== 1) return nodeType(node) === 9;
  const tag = htmlTag(node);
  if (tag === 'html' || tag === 'body') return true;
  const parent = parentNode(node);
  if (!parent || nodeType(parent) !== 1 || htmlTag(parent) !== 'body' || !hearing.has(node)) return false;
  const held = queryAll(node, CONTROLS).length;
  return held > ROOT_CONTROLS && 2 * held > queryAll(parent, CONTROLS).length;
}

/** What listens around `node`: `far` at the roots and the window, `near` below them. */
function around(node, known) {
  const path = [];
  let at = eventParent(node);
  for (; at && !known.has(at); at = eventParent(at)) path.push(at);
  let sum = at ? known.get(at) : { near: 0, far: windowHears };
  while (path.length) {
    const one = path.pop();
    sum = isRoot(one) ? { near: sum.near, far: sum.far | hears(one) } : { near: sum.near | hears(one), far: sum.far };
    known.set(one, sum);
  }
  return sum;
}

/** What listens between a field and the form around it, the form included; nothing without one. */
function aroundInForm(element) {
  let groups = 0;
  for (let node = eventParent(element); node; node = eventParent(node)) {
    groups |= hears(node);
    if (nodeType(node) === 1 && htmlTag(node) === 'form') return groups;
  }
  return 0;
}

/** Elements that a click activates by themselves. */
function isActive(element, tag) {
  if (tag === 'a' || tag === 'area') return hasAttr(element, 'href') || hasAttr(element, 'xlink:href');
  return isHtml(element) && (OWN_ROLES.has(tag) || tag === 'label');
}

/** The active elements in a control, and what listens in it. A click may land on any of them. */
function insideOf(element, tag) {
  const active = [];
  let groups = 0;
  if (LEAVES.has(tag)) return { active, groups };
  const stack = [element];
  for (let seen = 0; stack.length; ) {
    const node = stack.pop();
    if (nodeType(node) !== 1) continue;
    if (++seen > LOOKED_INTO) return { active, groups: ANY };
    const name = localName(node);
    if (FRAMES.has(name)) groups = ANY;
    if (node !== element) {
      groups |= hears(node);
      if (isActive(node, name)) active.push(node);
    }
    groups |= shadowHears.get(node) ?? 0;
    for (const child of flatChildren(node)) stack.push(child); // too many to be arguments
  }
  return { active, groups };
}

/** What a click on `element` activates: itself, or the nearest active element around it. */
function activeAround(element) {
  for (let node = element; node; node = eventParent(node)) {
    if (nodeType(node) === 1 && isActive(node, localName(node))) return node;
  }
  return null;
}

/** Every element that a click on a control may activate; for a label also the control that it stands for. */
function activated(element, inside) {
  const nearest = activeAround(element);
  const found = new Set(nearest ? [nearest, ...inside] : inside);
  for (const one of found) {
    const control = labelTarget(one) ?? null;
    if (control) found.add(control); // a set is walked on over what is added meanwhile
  }
  return [...found].map((one) => ({ one, tag: localName(one) }));
}

const BUTTONS = new Set(['submit', 'image', 'reset', 'button']);
const isButton = ({ one, tag }) => (tag === 'button' || tag === 'input') && BUTTONS.has(typeOf(one)); // no type: not HTML
const isChoice = (active) => active.tag === 'select' || (active.tag === 'input' && isHtml(active.one) && !isButton(active));
const scheme = (address, base) => {
  try {
    return new URL(address, base).protocol;
  } catch {
    return '';
  }
};
const isWeb = (protocol) => protocol === 'http:' || protocol === 'https:';

/** The method by which a click on an active element sends its form, '' where it sends none. */
function sentBy(active) {
  const { one } = active;
  if (!isButton(active) || !['submit', 'image'].includes(typeOf(one))) return '';
  const form = formOf(one);
  if (!form) return '';
  const method = hasAttr(one, 'formmethod') ? ownMethod(one) : methodOf(form);
  if (method === 'dialog') return method;
  return isWeb(scheme(hasAttr(one, 'formaction') ? ownAction(one) : actionOf(form), baseOf(one))) ? method : 'other';
}

/** Where a click on an active element leads as a link, '' where it is none. Chromium is started with `--no-pings`. */
function ledBy({ one, tag }) {
  if (tag !== 'a' && tag !== 'area') return '';
  const address = attr(one, 'href') || attr(one, 'xlink:href');
  if (!isWeb(scheme(address, baseOf(one)))) return 'other';
  if (hasAttr(one, 'download')) return 'file';
  return address.trim().startsWith('#') ? 'here' : 'page';
}

/** What can be put into an element: typed text, a choice or a file. */
function takenBy(element, tag) {
  if (!isHtml(element)) return '';
  if (tag === 'select') return 'choice';
  const type = tag === 'input' ? typeOf(element) : '';
  if (type === 'file') return 'file';
  if (tag === 'textarea' || (tag === 'input' && !NOT_TYPED.has(type))) return 'text';
  return editable(element) ? 'text' : '';
}

/** Attributes by which scripts find what they handle: all but those of plain HTML. Classes and ids style as well. */
const isMarked = (element) => attributeNames(element).some((name) =>
  name === 'role' ? !PLAIN_ROLES.has(attr(element, name)) : !PLAIN_ATTRIBUTES.has(name) && !name.startsWith('aria-'));

/** Whether a click on an active element loads a page as plain HTML does: by a link, or a form sent by GET. */
function loadsPlainly(active) {
  if (isMarked(active.one)) return false;
  return ledBy(active) === 'page' || (sentBy(active) === 'get' && !isMarked(formOf(active.one)));
}

/** What listens to the sending and resetting of the forms of these buttons. */
function formHears(active, known, plain) {
  let groups = 0;
  for (const { one } of active.filter(isButton)) {
    const form = typeOf(one) === 'button' ? null : formOf(one);
    if (!form) continue;
    const { near, far } = around(form, known);
    groups |= hears(form) | near | (plain ? 0 : far);
  }
  return groups & FORM;
}

/** What listens at the labels of a form control. */
function labelsHear(element, tag) {
  let groups = 0;
  if (OWN_ROLES.has(tag)) for (const label of labelsOf(element) ?? []) groups |= hears(label);
  return groups;
}

/** Which of the window's listeners hear of what these elements load: routers within the page, and any navigation. */
function routed(active) {
  const ways = active.map(ledBy);
  const loads = ways.some((way) => way) || active.some(sentBy);
  return windowHears & ((ways.includes('here') ? ROUTE : 0) | (loads ? NAVIGATE : 0));
}

/**
 * Whether scripts may hear of a press (1), of a new value (2) and of the pointer over a control (4).
 *
 * Every listener up to the window counts, with two exceptions, because most sites listen to everything at their root: of
 * a field for text only what listens at it and in its form, and of plain links and GET forms (see loadsPlainly) only what
 * listens below the roots. A script that handles those by class at the root is not seen here.
 */
function heardOf({ element, tag }, inside, active, takes, known) {
  const own = hears(element) | inside | labelsHear(element, tag);
  const { near, far } = around(element, known);
  const plain = active.length > 0 && activeAround(element) !== null && active.every(loadsPlainly);
  const whole = own | near | (plain ? 0 : far);
  const field = own | aroundInForm(element);
  const text = takes === 'text';
  let pressed = text ? field & PRESS : whole & (active.some(isChoice) ? PRESS | CHANGE : PRESS);
  pressed |= (own & (text ? FOCUS : FOCUS | HOVER)) | formHears(active, known, plain) | (plain ? 0 : routed(active));
  if (active.some(({ one }) => hasAttr(one, 'commandfor'))) pressed = ANY;
  const edited = text ? field & (CHANGE | KEY) : whole & CHANGE;
  return (pressed ? 1 : 0) | (edited ? 2 : 0) | ((own | near) & HOVER ? 4 : 0);
}

const worst = (found, order) => order.find((one) => found.includes(one)) ?? '';

/** [method sent, where it leads, what it takes, who hears] of a control. */
function effectOf(control, known) {
  const { element, tag } = control;
  const inside = insideOf(element, tag);
  const active = activated(element, inside.active);
  const takes = takenBy(element, tag);
  const sends = worst(active.map(sentBy), ['other', 'post', 'dialog', 'get']);
  const leads = worst(active.map(ledBy), ['other', 'file', 'page', 'here']);
  return [sends, leads, takes, heardOf(control, inside.groups, active, takes, known)];
}

const UNKNOWN = ['other', 'other', '', 7];

/** The effects of these controls, null where they were not asked for. One odd element does not cost the page. */
function effectsOf(controls) {
  if (!latest.settings.effects) return null;
  const known = new Map();
  return controls.map((control) => {
    try {
      return effectOf(control, known);
    } catch {
      return UNKNOWN;
    }
  });
}
