// Which part of a document lies on top of the rest: a modal dialog, or an overlay that covers the viewport with what is
// drawn above it. Decided by hit-testing a fixed number of points, so the cost does not grow with the page.

/** Fractions of the area, its centre and corners first: they decide for most pages. */
const PROBES = [[0.5, 0.5], [0.02, 0.03], [0.98, 0.97], [0.98, 0.03], [0.02, 0.97], [0.5, 0.03], [0.5, 0.97], [0.02, 0.5],
  [0.98, 0.5], [0.25, 0.25], [0.75, 0.25], [0.25, 0.75], [0.75, 0.75], [0.5, 0.25], [0.5, 0.75], [0.25, 0.03], [0.75, 0.97]];
const FIRST_PROBES = 5;
const OVERLAY_SHARE = 3; // an overlay is hit at one of three points at least
const DEEPEST_DIALOG = 3; // overlays searched inside one another
const COVERED_CONTENT = 'a[href],button,input,select,textarea,p,li,td,h1,h2,h3,img'; // what may lie under an overlay
const CONTENT_LISTED = 200;
const CONTENT_PROBED = 12;
const VERIFIED = 24; // fixed elements outside the top part that are hit-tested at their centre
const DIALOG = 'dialog,[role=dialog],[role=alertdialog],[aria-modal=true]';
const DIALOG_WORDS = /(^|[\s_-])(modal|dialog|lightbox|popup|drawer|sheet)/i;
const OUT_OF_FLOW = new Set(['fixed', 'absolute']);

/** The parent in the flat tree; the slot of a closed shadow root too, which elements do not tell. */
function flatAbove(node) {
  const slot = slotOf(node);
  if (slot) return slot;
  const parent = parentNode(node);
  const closed = parent && nodeType(parent) === 1 ? closedRoots.get(parent) : null;
  if (closed) for (const one of fragmentQueryAll(closed, 'slot')) if (assignedNodes(one).includes(node)) return one;
  return flatParent(node);
}

/** An element and its ancestors in the flat tree, without body and root element. */
function chainOf(element) {
  const chain = [];
  for (let node = element; node && nodeType(node) === 1; node = flatAbove(node)) {
    const tag = htmlTag(node);
    if (tag !== 'html' && tag !== 'body') chain.push(node);
  }
  return chain;
}

/** One analysis of an area: the points, what is hit there, and which elements cover the area. */
class Probing {
  constructor(page, area, within = null) {
    this.page = page;
    this.area = area;
    this.within = within; // only elements inside it count
    this.styles = new Map();
    this.points = [];
  }

  style(element) {
    if (!this.styles.has(element)) this.styles.set(element, getComputedStyle(element));
    return this.styles.get(element);
  }

  /** Hits all points; false as soon as plain page content is found among the first ones. */
  run() {
    const { left, top, width, height } = this.area;
    for (const [fx, fy] of PROBES) {
      const [x, y] = [left + width * fx, top + height * fy];
      const hit = deepest(this.page, x, y);
      let chain = hit ? chainOf(hit) : [];
      if (this.within) {
        const end = chain.indexOf(this.within);
        if (end < 0) continue; // something else is drawn above the dialog here
        chain = chain.slice(0, end);
      }
      const one = { x, y, hit: chain.length ? hit : null, chain };
      one.modal = chain.find((element) => matches(element, ':modal')) ?? null;
      one.cover = one.modal ?? chain.find((element) => this.covers(element, one)) ?? null;
      this.points.push(one);
      if (this.points.length <= FIRST_PROBES && chain.length && !one.cover && !chain.some((element) => this.isPlaced(element))) return false;
    }
    return this.points.length > 0;
  }

  isPlaced(element) {
    return this.style(element).position !== 'static' || matches(element, ':popover-open');
  }

  fills(box) {
    const { left, top, width, height } = this.area;
    return box.left <= left + 0.02 * width && box.top <= top + 0.02 * height &&
      box.right >= left + 0.98 * width && box.bottom >= top + 0.98 * height;
  }

  /** Whether an element out of the flow, or a pseudo-element of it, covers the area wherever the page is scrolled. */
  covers(element, point) {
    const { position } = this.style(element);
    const box = boxOf(element);
    const outside = point.x < box.left || point.x > box.right || point.y < box.top || point.y > box.bottom;
    if (outside && element === point.hit) return ['::before', '::after'].some((name) => OUT_OF_FLOW.has(getComputedStyle(element, name).position));
    if (!OUT_OF_FLOW.has(position) || !this.fills(box)) return false;
    if (position === 'fixed' || this.within) return true;
    const main = scroller(this.page);
    return !main || box.height >= scrollHeight(main) - 1 || scrollHeight(main) <= clientHeight(main) + 1 ||
      [main, bodyOf(this.page)].some((one) => one && /hidden|clip/.test(getComputedStyle(one).overflowY));
  }

  /** The element that covers most points; null if too few. */
  overlay() {
    const counts = new Map();
    for (const { cover } of this.points) if (cover) counts.set(cover, (counts.get(cover) ?? 0) + 1);
    const [best, count] = [...counts].reduce((most, entry) => (entry[1] > most[1] ? entry : most), [null, 0]);
    return OVERLAY_SHARE * count >= this.points.length ? best : null;
  }

  /** The element above the overlay that contains a point's hit; null if plain page content is hit there. */
  above(point, overlay) {
    const ancestors = new Set(chainOf(overlay));
    const path = point.chain.slice(0, point.chain.findIndex((element) => ancestors.has(element)) >>> 0);
    const isBelow = (element) => this.fills(boxOf(element)) && this.style(element).pointerEvents !== 'none' && point.cover !== element;
    const out = path.findLast((element) => OUT_OF_FLOW.has(this.style(element).position) && !isBelow(element));
    const stacked = path.findLast((element) => this.style(element).zIndex !== 'auto' && !isBelow(element));
    return out ?? stacked ?? path.find((element) => this.isPlaced(element)) ?? null;
  }

  /** The parts on top: the overlay and what is drawn above it. null if the rest of the page can be used. */
  onTop() {
    const modal = this.points.find((point) => point.modal)?.modal;
    if (modal) return { parts: new Set([modal]), main: modal, isInert: true };
    const overlay = this.overlay();
    if (!overlay) return null;
    const parts = new Set([overlay]);
    for (const point of this.points) {
      if (!point.hit || point.chain.includes(overlay)) continue;
      const part = this.above(point, overlay);
      if (!part) return null;
      parts.add(part);
    }
    if (!this.isBlocking(overlay, parts)) return null;
    const whole = this.wholeDialog(overlay, parts);
    if (whole) parts.add(whole);
    return { parts, main: whole ?? overlay, isInert: false, under: this.under(parts) };
  }

  /** Whether content lies under the parts, and they look like a dialog or dim it. A clear area that only catches the
   *  clicks beside a menu does neither. */
  isBlocking(overlay, parts) {
    const own = new Set(chainOf(overlay).slice(1));
    const isOn = (element) => chainOf(element).some((one) => parts.has(one));
    const isContent = (element) => !isRootTag(element) && !own.has(element) && !isOn(element) && !(this.fills(boxOf(element)) && !firstElement(element));
    const contents = [];
    const painted = new Set();
    for (const point of this.points.filter((one) => one.cover === overlay).slice(0, 6)) {
      for (const root of new Set([getRootNode(overlay), this.page])) {
        const stack = elementsAt(root, point.x, point.y) ?? [];
        const end = stack.findIndex(isContent);
        if (end >= 0 && (!this.within || contains(this.within, stack[end]))) contents.push(stack[end]);
        for (const element of end < 0 ? stack : stack.slice(0, end)) {
          const isOver = isOn(element) ? this.fills(boxOf(element)) || element === point.hit : this.covers(element, point);
          if (isOver && !isRootTag(element) && this.paints(element)) painted.add(element);
        }
      }
    }
    const hidden = contents.length ? null : this.hidden(overlay, parts);
    if (hidden) contents.push(hidden);
    if (!contents.length && !isDeclaredHidden(this.page, own)) return false;
    const around = new Set(contents.flatMap(chainOf));
    const dims = [...painted].some((element) => !around.has(element) && (contents.length > 0 || !own.has(element)));
    return dims || this.points.some(({ chain }) => chain.some((element) => matches(element, DIALOG)));
  }

  /** Some content outside the parts that lies under the overlay at its centre; null if none is found. */
  hidden(overlay, parts) {
    const { left, top, width, height } = this.area;
    const own = chainOf(overlay);
    const contents = this.within ? queryAll(this.within, COVERED_CONTENT) : documentQueryAll(this.page, COVERED_CONTENT);
    let probed = 0;
    for (let i = 0; i < Math.min(contents.length, CONTENT_LISTED) && probed < CONTENT_PROBED; i++) {
      const content = contents[i];
      const box = boxOf(content);
      const [x, y] = [box.left + box.width / 2, box.top + box.height / 2];
      if (box.width < 4 || box.height < 4 || x < left || y < top || x > left + width || y > top + height) continue;
      const around = new Set(chainOf(content));
      if ([...parts].some((part) => around.has(part))) continue;
      probed++;
      const stack = elementsAt(this.page, x, y) ?? [];
      const over = stack.findIndex((element) => own.includes(element) && !around.has(element));
      const under = stack.findIndex((element) => around.has(element));
      if (over >= 0 && over < under) return content;
    }
    return null;
  }

  /** Whether an element draws a background that covers what is under it, wholly or in part. */
  paints(element) {
    if (htmlTag(element) === 'iframe') return true;
    return [null, '::before', '::after'].some((name) => {
      const style = getComputedStyle(element, name);
      if (name && !OUT_OF_FLOW.has(style.position)) return false;
      const color = style.backgroundColor;
      const clear = (color.startsWith('rgba(') && / 0\)$/.test(color)) || color === 'transparent' || / \/ 0\)$/.test(color);
      return !clear || style.backgroundImage !== 'none' || (style.backdropFilter ?? 'none') !== 'none';
    });
  }

  /** The dialog whose backdrop the overlay is, if no other dialog lies in it. */
  wholeDialog(overlay, parts) {
    const isDialog = (element) => matches(element, DIALOG) || DIALOG_WORDS.test(attr(element, 'class'));
    const whole = chainOf(overlay).slice(1).find((element) => isDialog(element) && OUT_OF_FLOW.has(this.style(element).position));
    if (!whole || whole === this.within) return null;
    const inner = [...queryAll(whole, DIALOG)].slice(0, 20);
    const isHidden = (element) => isDrawn(element) && !chainOf(element).some((one) => parts.has(one)) && ![...parts].some((one) => contains(element, one));
    return inner.some(isHidden) ? null : whole;
  }

  /** Dialogs above the overlay that another one overlaps: only the topmost dialog is used. */
  under(parts) {
    const dialogs = [...parts].filter((element) => matches(element, DIALOG) || queryFirst(element, DIALOG));
    const isUnder = (lower) => dialogs.some((upper) => {
      if (upper === lower || contains(upper, lower) || contains(lower, upper)) return false;
      const [box, around] = [boxOf(upper), boxOf(lower)];
      const [x, y] = [box.left + box.width / 2, box.top + box.height / 2];
      if (x < around.left || x > around.right || y < around.top || y > around.bottom) return false;
      const hit = deepest(this.page, x, y);
      return hit !== null && chainOf(hit).includes(upper);
    });
    return dialogs.filter((element) => !matches(element, ':modal') && isUnder(element));
  }
}

const isRootTag = (element) => ['html', 'body'].includes(htmlTag(element));

/** Whether the page itself declares that the rest is out of use. */
function isDeclaredHidden(page, own) {
  const body = bodyOf(page);
  if (body && getComputedStyle(body).pointerEvents === 'none') return true;
  return [...documentQueryAll(page, 'body > [inert], body > [aria-hidden=true]')].some((element) => firstElement(element) && !own.has(element));
}

/** Marks of one document: elements with which an area in use begins (false) or a covered one (true). `main` is the topmost
 *  dialog, `isInert` whether nothing outside it can be in use. null if nothing is covered. */
function layersOf(page) {
  const view = viewOf(page);
  const root = rootElement(page);
  if (!view || !root || view.innerWidth < 50 || view.innerHeight < 50) return null;
  let area = { left: 0, top: 0, width: Math.min(view.innerWidth, clientWidth(root) || view.innerWidth), height: view.innerHeight };
  const marks = new Map();
  let found = null;
  let within = null;
  for (let depth = 0; depth < DEEPEST_DIALOG; depth++) {
    const probing = new Probing(page, area, within);
    const top = probing.run() ? probing.onTop() : null;
    if (!top) break;
    if (within) marks.set(within, true);
    for (const part of top.parts) marks.set(part, false);
    for (const part of top.under ?? []) marks.set(part, true);
    found = { marks, main: top.main, isInert: top.isInert || (found?.isInert ?? false), left: VERIFIED };
    within = dialogIn(probing, top);
    if (!within) break;
    area = clipped(boxOf(within), view);
    if (area.width < 50 || area.height < 50) break;
  }
  if (found) found.around = new Set([...marks.keys()].flatMap((element) => chainOf(element)));
  const modal = found ? null : [...documentQueryAll(page, ':modal')].pop();
  return modal ? { marks: new Map([[modal, false]]), main: modal, isInert: true, left: 0, around: new Set() } : found;
}

/** The dialog at the centre of the top part: another overlay may cover only this. */
function dialogIn(probing, top) {
  for (const { chain } of probing.points) {
    const part = chain.findIndex((element) => top.parts.has(element));
    const dialog = part < 0 ? null : chain.slice(0, part + 1).findLast((element) => matches(element, DIALOG));
    if (dialog && dialog !== probing.within) return dialog;
  }
  return null;
}

function clipped(box, view) {
  const [left, top] = [Math.max(0, box.left), Math.max(0, box.top)];
  return { left, top, width: Math.min(view.innerWidth, box.right) - left, height: Math.min(view.innerHeight, box.bottom) - top };
}

/** Whether a fixed element, or one in a container that lets clicks through, is drawn above the top part although it does
 *  not belong to it, for example a toast. */
function isAbove(layers, element, style, isInClear) {
  const isApart = style.position === 'fixed' || (isInClear && style.pointerEvents !== 'none');
  if (layers.isInert || !isApart || layers.left <= 0 || layers.around.has(element)) return false;
  layers.left--;
  const box = boxOf(element);
  if (box.width < 4 || box.height < 4) return false;
  const hit = deepest(ownerDocument(element), box.left + box.width / 2, box.top + box.height / 2);
  return hit !== null && chainOf(hit).includes(element);
}
