// The effects of using a control: the form that a click submits, the target of a link, the page's listeners.
// They are derived from markup and listeners, never from names or text, through the prototypes' own getters.

const PRESS = 1, CHANGE = 2, HOVER = 4, FORM = 8, FOCUS = 16, KEY = 32, ROUTE = 64, NAVIGATE = 128;
const ANY = 255; // the groups of envs/observer/listening.py
const MAX_EXAMINED = 200; // elements examined inside one control; everything counts as listening to a larger one
const NOT_TYPED = new Set(['checkbox', 'radio', 'button', 'submit', 'reset', 'image', 'hidden']);
const FRAMES = new Set(['iframe', 'frame', 'object', 'embed']);
const CONTROLS = 'a[href],button,input,select,textarea';
const ROOT_CONTROLS = 20; // a child of the body with more controls, and most of the page's, counts as the root of an application
const PLAIN_ATTRIBUTES = new Set(('href class id title target rel hreflang type lang dir style tabindex name value ' +
  'accesskey alt coords shape download ping referrerpolicy itemprop form formaction formmethod action method enctype ' +
  'accept-charset autocomplete novalidate width height src disabled').split(' '));
const PLAIN_ROLES = new Set(['link', 'search']);

const groupsByNode = new WeakMap(); // node → groups of its listeners
const shadowGroups = new WeakMap(); // host → groups of the listeners in its shadow trees, including unknown ones
let windowGroups = 0; // groups of the listeners of this process's windows

const listenerGroups = (node) => (groupsByNode.get(node) ?? 0) | (nodeType(node) === 1 ? shadowGroups.get(parentNode(node)) ?? 0 : 0);

/** Records listeners: `groups[i]` belongs to `nodes[i]`, which is null if the node is gone. */
function adoptListenerGroups(ofWindows, groups, ...nodes) {
  windowGroups = ofWindows;
  nodes.forEach((node, i) => {
    if (!node) return;
    groupsByNode.set(node, groups[i]);
    for (let host = hostOf(node); host; host = hostOf(host)) shadowGroups.set(host, (shadowGroups.get(host) ?? 0) | groups[i]);
  });
}

/** The host of the open or closed shadow root that contains a node. */
function hostOf(node) {
  const root = getRootNode(node);
  return nodeType(root) === 11 ? rootHost(root) : null;
}

/** The next node on the path of an event: the slot, the shadow root's host or the parent. */
function eventParent(node) {
  if (nodeType(node) === 11) return rootHost(node);
  return (nodeType(node) === 1 ? slotOf(node) : null) ?? parentNode(node);
}

/** Whether pages and applications delegate events here: document, root, body, and the body's main child. */
function isRoot(node) {
  if (nodeType(node) !== 1) return nodeType(node) === 9;
  const tag = htmlTag(node);
  if (tag === 'html' || tag === 'body') return true;
  const parent = parentNode(node);
  if (!parent || nodeType(parent) !== 1 || htmlTag(parent) !== 'body' || !groupsByNode.has(node)) return false;
  const held = queryAll(node, CONTROLS).length;
  return held > ROOT_CONTROLS && 2 * held > queryAll(parent, CONTROLS).length;
}

/** Listeners at the ancestors of `node`: `far` at the roots and the window, `near` below them. */
function around(node, known) {
  const path = [];
  let at = eventParent(node);
  for (; at && !known.has(at); at = eventParent(at)) path.push(at);
  let sum = at ? known.get(at) : { near: 0, far: windowGroups };
  while (path.length) {
    const one = path.pop();
    sum = isRoot(one) ? { near: sum.near, far: sum.far | listenerGroups(one) } : { near: sum.near | listenerGroups(one), far: sum.far };
    known.set(one, sum);
  }
  return sum;
}

/** Listeners between a field and its form, including the form; none without a form. */
function aroundInForm(element) {
  let groups = 0;
  for (let node = eventParent(element); node; node = eventParent(node)) {
    groups |= listenerGroups(node);
    if (nodeType(node) === 1 && htmlTag(node) === 'form') return groups;
  }
  return 0;
}

/** Whether a click activates the element itself. */
function isActive(element, tag) {
  if (tag === 'a' || tag === 'area') return hasAttr(element, 'href') || hasAttr(element, 'xlink:href');
  return isHtml(element) && (OWN_ROLES.has(tag) || tag === 'label');
}

/** The active elements and the listeners inside a control. A click may hit any of them. */
function insideOf(element, tag) {
  const active = [];
  let groups = 0;
  if (LEAVES.has(tag)) return { active, groups };
  const stack = [element];
  for (let seen = 0; stack.length; ) {
    const node = stack.pop();
    if (nodeType(node) !== 1) continue;
    if (++seen > MAX_EXAMINED) return { active, groups: ANY };
    const name = localName(node);
    if (FRAMES.has(name)) groups = ANY;
    if (node !== element) {
      groups |= listenerGroups(node);
      if (isActive(node, name)) active.push(node);
    }
    groups |= shadowGroups.get(node) ?? 0;
    for (const child of flatChildren(node)) stack.push(child); // too many to be arguments
  }
  return { active, groups };
}

/** The element that a click on `element` activates: itself or its nearest active ancestor. */
function activeAround(element) {
  for (let node = element; node; node = eventParent(node)) {
    if (nodeType(node) === 1 && isActive(node, localName(node))) return node;
  }
  return null;
}

/** All elements that a click on a control may activate; for a label also its control. */
function activated(element, inside) {
  const nearest = activeAround(element);
  const elements = new Set(nearest ? [nearest, ...inside] : inside);
  for (const one of elements) {
    const control = labelTarget(one) ?? null;
    if (control) elements.add(control); // the loop also visits added elements
  }
  return [...elements].map((one) => ({ one, tag: localName(one) }));
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

/** The method of the form that a click on an active element submits; '' if there is none. */
function sentBy(active) {
  const { one } = active;
  if (!isButton(active) || !['submit', 'image'].includes(typeOf(one))) return '';
  const form = formOf(one);
  if (!form) return '';
  const method = hasAttr(one, 'formmethod') ? ownMethod(one) : methodOf(form);
  if (method === 'dialog') return method;
  return isWeb(scheme(hasAttr(one, 'formaction') ? ownAction(one) : actionOf(form), baseOf(one))) ? method : 'other';
}

/** The kind of link target of an active element; '' if it is no link. Chromium is started with `--no-pings`. */
function ledBy({ one, tag }) {
  if (tag !== 'a' && tag !== 'area') return '';
  const address = attr(one, 'href') || attr(one, 'xlink:href');
  if (!isWeb(scheme(address, baseOf(one)))) return 'other';
  if (hasAttr(one, 'download')) return 'file';
  return address.trim().startsWith('#') ? 'here' : 'page';
}

/** What an element accepts: typed text, a choice or a file. */
function takenBy(element, tag) {
  if (!isHtml(element)) return '';
  if (tag === 'select') return 'choice';
  const type = tag === 'input' ? typeOf(element) : '';
  if (type === 'file') return 'file';
  if (tag === 'textarea' || (tag === 'input' && !NOT_TYPED.has(type))) return 'text';
  return editable(element) ? 'text' : '';
}

/** Whether it has attributes by which scripts may select it: all except those of plain HTML, classes and ids. */
const isMarked = (element) => attributeNames(element).some((name) =>
  name === 'role' ? !PLAIN_ROLES.has(attr(element, name)) : !PLAIN_ATTRIBUTES.has(name) && !name.startsWith('aria-'));

/** Whether a click on an active element loads a page like plain HTML: by a link or a GET form. */
function loadsPlainly(active) {
  if (isMarked(active.one)) return false;
  return ledBy(active) === 'page' || (sentBy(active) === 'get' && !isMarked(formOf(active.one)));
}

/** Listeners to the submit and reset events of the forms of these buttons. */
function groupsOfForm(active, known, plain) {
  let groups = 0;
  for (const { one } of active.filter(isButton)) {
    const form = typeOf(one) === 'button' ? null : formOf(one);
    if (!form) continue;
    const { near, far } = around(form, known);
    groups |= listenerGroups(form) | near | (plain ? 0 : far);
  }
  return groups & FORM;
}

/** Listeners at the labels of a form control. */
function groupsOfLabels(element, tag) {
  let groups = 0;
  if (OWN_ROLES.has(tag)) for (const label of labelsOf(element) ?? []) groups |= listenerGroups(label);
  return groups;
}

/** The window's listeners that react to what these elements load: routers in the page, and any navigation. */
function routed(active) {
  const ways = active.map(ledBy);
  const loads = ways.some((way) => way) || active.some(sentBy);
  return windowGroups & ((ways.includes('here') ? ROUTE : 0) | (loads ? NAVIGATE : 0));
}

/**
 * Whether scripts may react to a press (1), a new value (2) and the pointer over a control (4).
 *
 * All listeners up to the window count, with two exceptions, because most sites delegate events at their root: for text
 * fields only listeners at the field and in its form count, and for plain links and GET forms (see loadsPlainly) only
 * listeners below the roots. A script that handles the latter by class at the root is not detected.
 */
function listenedInputs({ element, tag }, inside, active, takes, known) {
  const own = listenerGroups(element) | inside | groupsOfLabels(element, tag);
  const { near, far } = around(element, known);
  const plain = active.length > 0 && activeAround(element) !== null && active.every(loadsPlainly);
  const all = own | near | (plain ? 0 : far);
  const field = own | aroundInForm(element);
  const text = takes === 'text';
  let pressed = text ? field & PRESS : all & (active.some(isChoice) ? PRESS | CHANGE : PRESS);
  pressed |= (own & (text ? FOCUS : FOCUS | HOVER)) | groupsOfForm(active, known, plain) | (plain ? 0 : routed(active));
  if (active.some(({ one }) => hasAttr(one, 'commandfor'))) pressed = ANY;
  const edited = text ? field & (CHANGE | KEY) : all & CHANGE;
  return (pressed ? 1 : 0) | (edited ? 2 : 0) | ((own | near) & HOVER ? 4 : 0);
}

const worst = (values, order) => order.find((value) => values.includes(value)) ?? '';

/** [form method, link target, accepted input, listeners] of a control. */
function effectOf(control, known) {
  const { element, tag } = control;
  const inside = insideOf(element, tag);
  const active = activated(element, inside.active);
  const takes = takenBy(element, tag);
  const sends = worst(active.map(sentBy), ['other', 'post', 'dialog', 'get']);
  const leads = worst(active.map(ledBy), ['other', 'file', 'page', 'here']);
  return [sends, leads, takes, listenedInputs(control, inside.groups, active, takes, known)];
}

const UNKNOWN = ['other', 'other', '', 7];

/** The effects of these controls; null if not requested. An element that fails gets UNKNOWN. */
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
