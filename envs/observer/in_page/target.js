// Resolves an element again, and finds a point at which to click it.

/** The element of ref `id` in the last observation, or of its key; else the status 'stale' or 'ambiguous'. */
function resolve(id, key) {
  const known = latest && latest.controls.find((control) => control.id === id && !control.dropped);
  if (known && isConnected(known.element) && attempt(() => sameKey(known.element, key, known), false)) return known.element;
  return search(key, known ? contextOf(known.element, latest, known) : null, known ? countOf(latest, key) : null);
}

function sameKey(element, key, known) {
  const tag = tagOf(element);
  const native = roleOf(element, tag);
  const role = isControl(native, tag) ? native : known.role;
  const full = fullName(element, tag, role, 160, known.reveal);
  const name = cut((known.named && partName(element)) || full, latest.settings.nameChars);
  return role === key.role && (name === key.name || cut(name, CONTAINER_NAME) === key.name) && digestOf(known) === key.digest;
}

const fits = (observation, control, key) => !control.dropped && control.role === key.role && (control.name === key.name || control.uncut === key.name) &&
  observation.documents[control.frame].path === key.frame;
const countOf = (observation, key) => observation.controls.filter((control) => fits(observation, control, key)).length;

/** The text of a control's line, which distinguishes equal buttons in different rows. */
function contextOf(element, observation, control) {
  const line = observation.lines.find((candidate) => candidate.parts && candidate.parts.some((part) => part.control === control));
  return line ? renderLine(line).join(' ').replace(/\u0001\d+\u0005| \([a-z ]+\?\)/g, '') : ''; // guesses come and go
}

/** Observes the current page. Returns the only match, or of several the one in the same line; never guesses. */
function search(key, context, count) {
  const observation = new PageObservation(latest ? latest.settings : configured({})).run(2 * MAX_NODES, 2000);
  const same = observation.controls.filter((control) => fits(observation, control, key) && attempt(() => digestOf(control), '') === key.digest);
  if (same.length === 1) return same[0].element;
  if (!same.length) return 'stale';
  const ranked = same.find((control) => control.ordinal === key.ordinal);
  if (context === null) return ranked ? ranked.element : 'ambiguous'; // a replay has only the rank
  const alike = same.filter((control) => contextOf(control.element, observation, control) === context);
  if (alike.length === 1) return alike[0].element;
  return alike.length && ranked && alike.includes(ranked) && countOf(observation, key) === count ? ranked.element : 'ambiguous';
}

/** The box in CSS pixels of the viewport of this process's top document, or null. */
function topBox(element) {
  const box = boxOf(element);
  if (!box.width && !box.height) return null;
  const [left, top] = toTop(element, box.left, box.top);
  const [right, bottom] = toTop(element, box.right, box.bottom);
  const values = [left, top, right - left, bottom - top].map((value) => Math.round(value * 10) / 10);
  return values.every(Number.isFinite) ? values : null; // a transform may overflow
}

/** Converts a point of the viewport of an element's document to that of this process's top document. */
function toTop(element, x, y) {
  for (let holder = holderOf(element); holder; holder = holderOf(holder)) [x, y] = outOf(holder, x, y);
  return [x, y];
}

/** Converts a point of the viewport in an iframe, which may be drawn smaller or larger, to the viewport around it. */
function outOf(frame, x, y) {
  const box = boxOf(frame);
  const scale = scaleOf(frame, box);
  return [box.left + (clientLeft(frame) + x) * scale, box.top + (clientTop(frame) + y) * scale];
}

const scaleOf = (frame, box) => (offsetWidth(frame) ? box.width / offsetWidth(frame) : 1);

function holderOf(element) {
  const view = viewOf(ownerDocument(element));
  return view && view !== window ? view.frameElement : null;
}

/** Scrolls `this` into view and finds an uncovered point of it: {x, y} or {status, message}; with {hover: {x, y}} if it
 *  may show while the pointer is over that point. */
function pointOf(presses) {
  if (!isConnected(this)) return sent({ status: 'stale', message: 'the element left the page' });
  if (matches(this, ':disabled') || attr(this, 'aria-disabled') === 'true') {
    return sent({ status: 'disabled', message: 'the element is disabled' });
  }
  if (presses) attempt(() => notePress(this), null);
  const shown = drawnPart(this);
  const covering = shown ? pointIn(shown, this) : null;
  if (covering && covering.x !== undefined) return sent(covering);
  const reason = shown ? { status: 'covered', message: `covered by ${covering.by}` } :
    { status: 'not_actionable', message: 'the element has no visible box' };
  const hover = isRevealed(this) ? hoverSpot(this) : null;
  return sent(hover ? { ...reason, hover } : reason);
}

/** An uncovered point of `this` without scrolling: {x, y}, or null. */
function pointNow() {
  const shown = isConnected(this) ? drawnPart(this) : null;
  const point = shown ? tryPoints(shown, this) : {};
  return sent(point.x === undefined ? null : point);
}

/** An uncovered point of the drawn part `shown` of a target, after scrolling it into view: {x, y} or {by}. */
function pointIn(shown, target) {
  scrollIntoView(shown, { block: 'nearest', inline: 'nearest', behavior: 'instant' });
  const covering = tryPoints(shown, target);
  if (covering.x !== undefined) return covering;
  scrollIntoView(shown, { block: 'center', inline: 'center', behavior: 'instant' });
  return tryPoints(shown, target);
}

const isRevealed = (element) => growsOnHover(element) ||
  (latest !== null && latest.controls.some((control) => control.element === element && control.reveal));

/** Where the pointer must be for a hidden element to show: over a drawn sibling whose hover shows it, else over the nearest
 *  drawn element around it. */
function hoverSpot(element) {
  for (let node = element; node && nodeType(node) === 1 && !isRootTag(node); node = flatUp(node)) {
    const beside = [previousElement(node), nextElement(node)].filter((other) => other && isDrawn(other));
    for (const other of beside) {
      const spot = showsBeside(other, node) ? pointIn(other, other) : null;
      if (spot && spot.x !== undefined) return spot;
    }
    if (node === element || !isDrawn(node) || getComputedStyle(node).opacity === '0') continue;
    const spot = pointIn(node, node);
    if (spot.x !== undefined) return spot;
  }
  return null;
}

/** Whether the hover of an element, and not of one around both, shows the hidden sibling. */
const showsBeside = (element, hidden) => fitsRule(element, 'trigger') && !isDrawn(hidden);

/** Resolves when `this` can be hit, at most after `most` ms: it may appear by a transition. */
function untilShown(most) {
  const end = performance.now() + most;
  return new Promise((done) => {
    const poll = () => {
      const shown = drawnPart(this);
      if ((shown && tryPoints(shown, this).x !== undefined) || performance.now() > end) return done();
      setTimeout(poll, 30);
    };
    poll();
  });
}

/** The element itself, or its label if the element is not drawn. */
function drawnPart(element) {
  const box = boxOf(element);
  if (box.width >= 2 && box.height >= 2 && getComputedStyle(element).visibility === 'visible') return element;
  for (const label of labelsOf(element) ?? []) if (isDrawn(label)) return label;
  for (const child of queryAll(element, '*')) if (isDrawn(child)) return child;
  return box.width > 0 && box.height > 0 ? element : null;
}

const POINTS = [[0.5, 0.5], [0.5, 0.2], [0.2, 0.5], [0.8, 0.5], [0.5, 0.8], [0.1, 0.1]];
/** Tried when controls inside the target lie at the points above: along its edges. */
const EDGE_POINTS = [0.05, 0.35, 0.65, 0.95].flatMap((f) => [[0.03, f], [0.97, f], [f, 0.06], [f, 0.94], [f, 0.35], [f, 0.65]]);

/** An uncovered point: {x, y}, else {by}. A point on another control inside the target is used only if there is no other. */
function tryPoints(shown, target) {
  const view = viewOf(ownerDocument(shown));
  const inner = controlsIn(target);
  let by = 'another element';
  let shared = null;
  for (const box of getClientRects(shown)) {
    const x0 = Math.max(box.left, 0);
    const y0 = Math.max(box.top, 0);
    const width = Math.min(box.right, view.innerWidth) - x0;
    const height = Math.min(box.bottom, view.innerHeight) - y0;
    if (width <= 0 || height <= 0) continue;
    for (const [fx, fy] of inner.size ? [...POINTS, ...EDGE_POINTS] : POINTS) {
      const [x, y] = [x0 + width * fx, y0 + height * fy];
      const hit = deepest(ownerDocument(shown), x, y);
      if (hit && reaches(hit, shown, target) && holdersShow(shown, x, y)) {
        const [left, top] = toTop(shown, x, y);
        const point = { x: left, y: top };
        if (!isInside(hit, target, inner)) return point;
        shared ??= point;
      } else if (hit) by = described(hit);
    }
  }
  return shared ?? { by };
}

/** The other controls of the last observation inside a control. One of the same name is the control itself: the handler of a
 *  tab may be on the link in it. */
function controlsIn(target) {
  const controls = latest ? latest.controls : [];
  const own = controls.find((control) => control.element === target);
  const isOther = (control) => !control.dropped && control.element !== target && labelTarget(control.element) !== target;
  const others = controls.filter((control) => isOther(control) && (!own || control.name !== own.name));
  return new Set(others.map((control) => control.element).filter((element) => contains(target, element)));
}

/** Whether a hit lies in one of the controls inside the target. */
function isInside(hit, target, inner) {
  for (let node = hit; node && node !== target && nodeType(node) === 1; node = flatUp(node)) if (inner.has(node)) return true;
  return false;
}

/** The topmost element at a point, through open and known closed shadow roots. */
function deepest(page, x, y) {
  let hit = elementAt(page, x, y);
  for (let root = hit && shadowOf(hit); root; root = shadowOf(hit)) {
    const inner = elementAt(root, x, y);
    if (!inner || inner === hit) break;
    hit = inner;
  }
  return hit;
}

/** Whether a click on `hit` activates the target: `hit` is inside it or inside its label. */
function reaches(hit, shown, target) {
  for (let node = hit; node && nodeType(node) === 1; node = flatUp(node)) {
    if (node === shown || node === target) return true;
    if (labelTarget(node) === target) return true;
  }
  return false;
}

const flatUp = (node) => slotOf(node) ?? flatParent(node);

/** Whether the iframe is on top at the point in every outer document of this process. */
function holdersShow(element, x, y) {
  for (let holder = holderOf(element); holder; holder = holderOf(holder)) {
    [x, y] = outOf(holder, x, y);
    if (deepest(ownerDocument(holder), x, y) !== holder) return false;
  }
  return true;
}

function described(element) {
  const tag = tagOf(element);
  const name = cut(nameOf(element, tag, 'clickable', 40), 40);
  return name ? `${tag} ${quoted(name)}` : tag;
}

/** Scrolls an iframe of another process into view. */
function showHolder(frame) {
  scrollIntoView(frame, { block: 'nearest', inline: 'nearest', behavior: 'instant' });
}

/** Converts a point of a cross-process frame's viewport to this viewport; 'null' if the frame is covered there. */
function throughHolder(frame, x, y) {
  const [left, top] = outOf(frame, x, y);
  if (deepest(ownerDocument(frame), left, top) !== frame || !holdersShow(frame, left, top)) return 'null';
  return sent(toTop(frame, left, top));
}

/** The tag, input type and current states of a resolved element. */
function facts(element) {
  const tag = tagOf(element);
  const control = { element, tag, role: roleOf(element, tag), states: [], value: null };
  attempt(() => readState(control, configured({})), null);
  return sent({ tag, type: tag === 'input' ? typeOf(element) : '', states: control.states });
}
