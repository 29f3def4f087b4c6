// One pass over the page: blocks become lines of text and controls, long series of siblings become groups.
// It is iterative, because a page may be nested deeper than the call stack.

const SKIPPED = new Set('script style head noscript template meta link title base defs clippath mask symbol param source track'.split(' '));
const SHAPES = new Set('rect circle ellipse polygon polyline line path text image g use'.split(' '));
const HANDLERS = ['onclick', 'onmousedown', 'onmouseup', 'onpointerdown', 'onpointerup', 'ondblclick'];
const PLACED = new Set(['absolute', 'fixed']); // may be at a position that cannot be scrolled to
const PLAIN = new Set(('inline contents ruby table-row table-cell table-row-group table-header-group table-footer-group ' +
  'table-caption').split(' ')); // display values that neither clip nor hide their content and cannot be positioned
const OWN_HOSTS = new Set('article aside blockquote body div footer h1 h2 h3 h4 h5 h6 header main nav p section span'.split(' '));
const MAX_NODES = 40000; // nodes visited in one observation; the rest is counted, and `find` continues
const MAX_HOSTS = 64; // closed-root candidates per observation
const LINE_CHARS = 400; // approximate maximum length of a line
const SHAPES_SHOWN = 40; // listed shapes of one drawing

/** Whether a box hides its content: `content-visibility: hidden`, or clipped to zero height (a closed accordion). */
const isShut = (element, tag, style) => style.contentVisibility === 'hidden' ||
  (!clientHeight(element) && style.overflowY !== 'visible' && tag !== 'html' && tag !== 'body' && namespaceOf(element) !== SVG);

/** The result of `read`, or `otherwise` if it throws. */
function attempt(read, otherwise) {
  try {
    return read();
  } catch {
    return otherwise;
  }
}

class PageWalk {
  constructor(settings) {
    this.settings = settings;
    this.lines = [];
    this.parts = [];
    this.controls = [];
    this.emitted = new Set();
    this.current = null;
    this.groups = [];
    this.frames = []; // all iframes in order; `remote` if another process draws it
    this.documents = []; // for each walked document: the frame path and its iframe
    this.hosts = [];
    this.surfaces = []; // elements that may be drawn areas
    this.nodes = 0;
    this.unread = 0; // elements that could not be read or are nested too deeply in other controls
    this.stack = [];
    this.front = 0; // number of lines of the topmost dialogs, which come first
    startScan();
    this.pushDocument(document, '', null);
  }

  /** Continues the walk to the end of the page, for at most `nodes` nodes and `milliseconds`. */
  run(nodes, milliseconds) {
    const end = performance.now() + milliseconds;
    const last = this.nodes + nodes;
    collectLabels(true);
    while (this.stack.length && this.nodes < last && (this.nodes % 64 || performance.now() < end)) {
      this.step(this.stack.pop());
    }
    collectLabels(false);
    this.flush();
    rankControls(this.controls);
    return this;
  }

  /** An element that cannot be read is counted, and its children are still walked. */
  step(item) {
    try {
      if (typeof item === 'function') item();
      else this.visit(item.node, item.context);
    } catch {
      this.unread++;
      if (typeof item !== 'function') this.walkInto(item.node, item.context);
    }
  }

  walkInto(node, context) {
    const children = attempt(() => flatChildren(node), []);
    for (let i = children.length - 1; i >= 0; i--) this.stack.push({ node: children[i], context });
  }

  /** Number of subtrees that were not walked. */
  get left() {
    return this.stack.reduce((count, item) => count + (typeof item === 'function' ? 0 : 1), 0);
  }

  pushDocument(page, path, holder) {
    const top = rootElement(page);
    const layers = attempt(() => layersOf(page), null);
    this.documents.push({ path, holder, inner: 0, layers, behind: 0 });
    const context = { layers, covered: layers !== null, clear: false, inert: false, frame: this.documents.length - 1, text: true, visible: true,
      pointer: false, placed: false, control: null, rows: null, row: null, group: null, label: false, reveal: false, hash: fnv(''), element: null, opacity: '' };
    if (layers) this.stack.push(() => this.tellBehind(context));
    if (top) this.stack.push({ node: top, context });
  }

  /** The line for all that lies under a document's topmost dialog. */
  tellBehind(context) {
    const { behind } = this.documents[context.frame];
    if (!behind) return;
    this.flush();
    this.current = context;
    this.lines.push({ behind, frame: context.frame, at: context.layers.main, ...this.place() });
  }

  visit(node, context) {
    this.nodes++;
    const type = nodeType(node);
    if (type === 3) {
      if (context.text && context.visible && !context.covered) this.addText(dataOf(node), node);
    } else if (type === 1) {
      this.visitElement(node, tagOf(node), context);
    }
  }

  visitElement(element, tag, context) {
    if (SKIPPED.has(tag.toLowerCase())) return;
    if (this.settings.skip && matches(element, this.settings.skip)) return;
    const style = getComputedStyle(element);
    const role = roleOf(element, tag);
    const { opacity } = style;
    const hidden = style.display === 'none' ? 'display' : opacity === '0' && !(tag === 'input' && isControl(role, tag)) ? 'opacity' : '';
    const inner = { ...context, element, opacity, visible: style.visibility === 'visible', pointer: style.cursor === 'pointer' };
    if (context.layers) this.enterLayer(element, style, context, inner);
    if (hidden || (!inner.visible && !context.reveal && hasAttributes(element))) {
      const revealed = !inner.covered && this.enterRevealed(element, hidden || 'visibility', context, inner);
      if (hidden && !revealed) return;
    }
    if (inner.reveal) inner.visible = true;
    if (inner.covered) return this.passCovered(element, tag, role, style, context, inner);
    const plain = PLAIN.has(style.display);
    if (!plain && !inner.placed) inner.placed = PLACED.has(style.position);
    if (hasAttributes(element)) {
      if (attr(element, 'aria-hidden') === 'true') inner.text = false;
      if (hasAttr(element, 'inert')) inner.inert = true;
    }
    if (LANDMARKS[tag] || (role && !isControl(role, tag))) inner.hash = fnv('/' + role, context.hash);
    const block = this.openBlock(element, tag, role, style, inner);
    if (block) {
      this.stack.push(() => {
        this.flush();
        this.current = context;
      });
    }
    if (DRAWN_TAGS.has(tag) && inner.visible && !inner.control) this.surfaces.push({ element, tag });
    if (tag === 'br' || tag === 'hr') return this.softBreak(inner);
    if (tag === 'iframe' || tag === 'frame') return inner.visible ? this.visitFrame(element, inner) : undefined;
    if (tag === 'img' && inner.text && attr(element, 'alt').trim() && inner.visible) {
      this.parts.push({ image: cut(clean(attr(element, 'alt')), this.settings.nameChars), at: element });
    }
    if (!this.addControl(element, tag, role, style, context, inner)) return;
    if (plain || inner.reveal || !isShut(element, tag, style) || this.enterRevealed(element, 'size', context, inner)) this.descend(element, tag, inner);
  }

  /** Begins or ends what is in use, where a dialog or overlay covers the rest. */
  enterLayer(element, style, context, inner) {
    const mark = context.layers.marks.get(element);
    if (mark === false || (mark === undefined && context.covered && isAbove(context.layers, element, style, context.clear))) this.openLayer(element, context, inner);
    else if (mark === true) inner.covered = true;
    inner.clear = style.pointerEvents === 'none';
  }

  /** The lines of the topmost dialog come before all others of the page. */
  openLayer(element, context, inner) {
    inner.covered = false;
    this.flush();
    const from = this.lines.length;
    const before = this.current;
    this.current = inner;
    this.stack.push(() => {
      this.flush();
      this.current = before;
      if (inner.frame || !(element === context.layers.main || matches(element, DIALOG) || queryFirst(element, DIALOG))) return;
      const lines = this.lines.splice(from);
      this.lines.splice(this.front, 0, ...lines);
      this.front += lines.length;
    });
  }

  /** Counts the controls under a dialog without reading them. */
  passCovered(element, tag, role, style, context, inner) {
    if (tag === 'iframe' || tag === 'frame') return void this.documents[inner.frame].inner++;
    if (inner.visible && !inner.control && (isControl(role, tag) || isEditingHost(element) || this.isGeneric(element, style, context, inner))) {
      if (this.hasPlace(element, role, inner.placed)) this.documents[inner.frame].behind++;
      inner.control = { element, role: 'button', depth: 0 };
    }
    this.emitted.add(element);
    if (!LEAVES.has(tag)) this.descend(element, tag, inner);
  }

  /** Shows what is hidden until the pointer is over its row; many controls are only counted. */
  enterRevealed(element, kind, context, inner) {
    if (!showsOnHover(element, kind, context)) return false;
    inner.text = false;
    const count = context.reveal ? 0 : countInteractive(element);
    if (count <= REVEALED) {
      inner.reveal = true;
      return true;
    }
    if (context.text && context.visible) this.parts.push({ text: ` (${count} controls show on hover) `, at: flatParent(element) });
    return false;
  }

  /** Starts a new line, heading, table row or row of a group; true if the line must end with the element. */
  openBlock(element, tag, role, style, inner) {
    const display = style.display;
    if (display === 'none') return false; // shown on hover
    if (inner.row) {
      if (display === 'table-cell' || role === 'gridcell' || role === 'cell' || role === 'columnheader') this.parts.push({ cell: true });
      return false;
    }
    const grouped = inner.group && inner.group.parent === flatParent(element) && display !== 'inline';
    if (grouped) inner.group = { ...inner.group, row: inner.group.of.rows++, parent: null };
    else if (inner.group && inner.group.parent) inner.group = null;
    const inline = display.startsWith('inline') || display === 'contents' || display.startsWith('ruby');
    if (inline && !grouped) return false;
    this.flush();
    this.current = inner;
    if ((display === 'table-row' || role === 'row') && !queryFirst(element, 'table,[role=grid],iframe')) inner.row = element;
    if (/^h[1-6]$/.test(tag) || role === 'heading') this.parts.push({ heading: true });
    return true;
  }

  softBreak(inner) {
    if (inner.row) this.parts.push({ space: true });
    else this.flush();
  }

  descend(element, tag, inner) {
    if (tag === 'svg' && !inner.control) return inner.covered ? undefined : this.visitDrawing(element, inner);
    let children = flatChildren(element);
    if (tag === 'details' && !isOpen(element)) {
      children = children.filter((child) => nodeType(child) === 1 && htmlTag(child) === 'summary').slice(0, 1);
    }
    if (!inner.group && !inner.covered && children.length > this.settings.collapseRows) this.openGroup(element, children, inner);
    this.considerHost(element, tag, children);
    for (let i = children.length - 1; i >= 0; i--) this.stack.push({ node: children[i], context: inner });
  }

  /** Many siblings of the same shape are rows of a group, which collapses if the budget is tight. */
  openGroup(element, children, inner) {
    const counts = new Map();
    for (const child of children) {
      if (nodeType(child) === 1) counts.set(localName(child), (counts.get(localName(child)) ?? 0) + 1);
    }
    const [tag, count] = [...counts].reduce((best, entry) => (entry[1] > best[1] ? entry : best), ['', 0]);
    if (count <= this.settings.collapseRows || SHAPES.has(tag)) return;
    const kind = tag === 'tr' || tag.endsWith('row') ? 'row' : tag === 'li' ? 'item' : 'block';
    const of = { kind, rows: 0 };
    this.groups.push(of);
    inner.group = { of, row: 0, parent: element };
  }

  /** A host that draws something other than its children may have a closed shadow root: it is reported. */
  considerHost(element, tag, children) {
    const custom = tag.includes('-');
    if (this.hosts.length >= MAX_HOSTS || !(custom || OWN_HOSTS.has(tag)) || shadowOf(element)) return;
    const child = firstElement(element);
    const inside = child && boxOf(child);
    const filled = inside ? inside.width > 0 : children.some((one) => nodeType(one) === 3 && clean(dataOf(one)));
    if (filled && !custom) return;
    const requests = askedHosts.get(element) ?? 0;
    if (requests >= (filled ? 1 : 3)) return; // a custom element may get its root after the first observation
    const box = boxOf(element);
    if (!custom && (box.width < 1 || box.height < 1)) return; // a dialog in a custom element has no place in its box
    askedHosts.set(element, requests + 1);
    this.hosts.push(element);
  }

  /** A drawing: shapes with listeners are controls; in a large drawing plain shapes are listed too. */
  visitDrawing(svg, inner) {
    const box = boxOf(svg);
    const large = box.width >= 60 && box.height >= 60;
    const shapes = [...queryAll(svg, '*')].filter((shape) => SHAPES.has(localName(shape)));
    let shown = 0;
    let more = 0;
    for (const shape of shapes) {
      this.nodes++;
      const tag = localName(shape);
      const style = getComputedStyle(shape);
      if (style.display === 'none' || style.visibility !== 'visible') continue;
      const live = this.isGeneric(shape, style, { pointer: inner.pointer, control: null });
      if (live && !(tag === 'g' && shapes.some((other) => other !== shape && listening.has(other) && contains(shape, other)))) {
        this.emit(shape, tag, tag === 'g' || tag === 'use' || tag === 'path' ? 'clickable' : tag, { ...inner, control: null });
      } else if (tag === 'text') {
        if (inner.text) this.parts.push({ text: clean(textContent(shape)), at: shape });
      } else if (large && inner.text && tag !== 'g' && tag !== 'use' && tag !== 'path') {
        if (shown++ < SHAPES_SHOWN) this.parts.push({ text: `${tag} ${shapeName(shape)}`, at: shape });
        else more++;
      }
    }
    if (more) this.parts.push({ text: `and ${more} more shapes`, at: svg });
  }

  visitFrame(element, inner) {
    const holder = this.documents[inner.frame];
    const box = boxOf(element);
    const path = (holder.path ? holder.path + '.' : '') + holder.inner++;
    if (box.width < 2 || box.height < 2) return;
    const page = documentOf(element);
    const title = clean(attr(element, 'title') || attr(element, 'aria-label') || attr(element, 'name'));
    const frame = { element, path, remote: !page, title, url: page ? addressOf(page) : frameAddress(element), index: this.frames.length };
    this.frames.push(frame);
    this.flush();
    this.current = { frame: inner.frame, group: inner.group };
    this.lines.push({ open: frame, frame: inner.frame, at: element, ...this.place() });
    if (!page) return void this.lines.push({ close: frame, frame: inner.frame, at: element, ...this.place() });
    this.stack.push(() => {
      this.flush();
      this.lines.push({ close: frame, frame: inner.frame, at: element, ...this.place() });
    });
    this.pushDocument(page, path, element);
  }

  place() {
    const group = this.current && this.current.group;
    return group && !group.parent ? { group: group.of, row: group.row } : {};
  }

  addText(data, node) {
    const icon = ligatureOf(node, data);
    if (icon) return void this.parts.push({ icon, at: node });
    const text = withoutGlyphs(visible(data));
    if (/\S/.test(text)) {
      const last = this.parts[this.parts.length - 1];
      if (last && last.text && mayContinue(last.text, text) && isApart(last.at, node)) this.parts.push({ space: true });
      this.parts.push({ text: text.replace(/\s+/g, ' '), at: node });
    } else if (text) this.parts.push({ space: true });
  }

  /** Ends the current line. */
  flush() {
    const parts = this.parts;
    if (!parts.length) return;
    this.parts = [];
    if (!parts.some((part) => part.text || part.control || part.image || part.icon)) return;
    const at = parts.find((part) => part.at).at;
    this.lines.push({ parts, at, frame: this.current ? this.current.frame : 0, ...this.place() });
  }
}
