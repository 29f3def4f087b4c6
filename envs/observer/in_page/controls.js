// Which elements are controls. Each control is shown once, by role and name, without repeating its content.

const LEAVES = new Set(['input', 'select', 'textarea', 'video', 'audio']);
const CHECKABLE = new Set(['checkbox', 'radio', 'switch']);
const CONTAINER_NAME = 60; // maximum name length of a control whose content is shown after it
const MAX_NESTED = 50; // nesting depth of controls beyond which they are only counted
const DELEGATES = 8; // a listener around more controls than this only delegates for them

class PageObservation extends PageWalk {
  constructor(settings) {
    super(settings);
    forgetSelectors();
  }

  /** Adds `element` if it is a control. Returns whether the walk should enter it. */
  addControl(element, tag, role, style, context, inner) {
    if (tag === 'label') return this.enterLabel(element, inner);
    if (isControl(role, tag)) {
      if (isCopy(element, tag, style)) return false;
      if (this.isTooDeep(inner)) return true;
      if (!this.hasPlace(element, role, inner.placed, inner.reveal) && !this.enterRevealed(element, 'size', context, inner)) inner.text = false;
      else if (inner.visible) this.addWidget(element, tag, role, inner);
      return !LEAVES.has(tag) && !isEditingHost(element);
    }
    if (isEditingHost(element)) {
      if (inner.visible && this.hasPlace(element, 'textbox', inner.placed, inner.reveal)) this.emit(element, tag, 'textbox', inner);
      return false;
    }
    const source = inner.visible && !this.isTooDeep(inner) ? this.isGeneric(element, style, context, inner, role) : '';
    if (source) this.addClickable(element, tag, source, inner);
    return true;
  }

  /** Deeply nested controls would be slow, because the name of each is its whole content. */
  isTooDeep(inner) {
    if (!inner.control || inner.control.depth < MAX_NESTED) return false;
    if (inner.control !== this.deepest) this.unread++;
    this.deepest = inner.control; // counted once
    return true;
  }

  /** Whether it has a box that can be scrolled into view. A link may have an empty box around a visible image. */
  hasPlace(element, role, placed, reveal = false) {
    if (reveal) return true;
    if (!placed && offsetWidth(element) && offsetHeight(element)) return true;
    const box = boxOf(element);
    if (box.width < 1 || box.height < 1) {
      const child = FROM_CONTENT.has(role) ? firstElement(element) : null;
      return child !== null && isDrawn(child);
    }
    const view = viewOf(ownerDocument(element));
    return !view || (box.right + view.scrollX > 0 && box.bottom + view.scrollY > 0);
  }

  /** Adds a control by its role. Its content is walked for further controls, and for text that its name lacks. */
  addWidget(element, tag, role, inner) {
    const control = this.emit(element, tag, role, inner);
    inner.control = control;
    if (control.cut && FROM_CONTENT.has(role) && !LEAVES.has(tag) && !control.labelled) shorten(control);
    if (role === 'combobox' && tag !== 'input' && tag !== 'select') inner.text = false; // its content is its value
    if (!FROM_CONTENT.has(role) || LEAVES.has(tag)) return;
    const unnamed = control.cut || (control.labelled && contentText(element, 60).length > 40);
    if (!unnamed) inner.text = false;
  }

  /** The text of a label is the name of its control, so only the controls inside the label are shown. */
  enterLabel(label, inner) {
    const control = labelTarget(label);
    if (!control || !inner.visible) return true;
    const tag = tagOf(control);
    const checkable = tag === 'input' && ['checkbox', 'radio', 'file'].includes(typeOf(control));
    if (checkable && !this.emitted.has(control) && !isDrawn(control)) {
      this.emit(control, tag, roleOf(control, tag), inner);
    }
    const named = !attr(control, 'aria-label') && !attr(control, 'aria-labelledby') && tag !== 'button';
    if (named && (checkable || isDrawn(control))) inner.text = false;
    inner.label = true;
    return true;
  }

  /** Why an element without a widget role is clickable; '' if it is not. */
  isGeneric(element, style, context, inner = context, role = '') {
    const tag = tagOf(element);
    if (tag === 'html' || tag === 'body') return '';
    const bare = !hasAttributes(element);
    const inWidget = context.control !== null && context.control.role !== 'clickable';
    if (context.rows && context.rows === flatParent(element)) return 'listener';
    if (listening.has(element) || (!bare && hasHandler(element))) {
      if (context.control === null && style.cursor !== 'pointer' && listensForRows(element, tag)) {
        inner.rows = element;
        return '';
      }
      if (style.cursor === 'pointer' && !context.pointer && isListOfRows(element, tag, role)) {
        inner.pointer = false;
        return '';
      }
      return inWidget && isWhole(element, context.control) ? '' : 'listener';
    }
    if (style.cursor === 'pointer' && !context.pointer && !context.label && !inWidget) {
      if (!isListOfRows(element, tag, role)) return 'pointer';
      inner.pointer = false; // its rows are clickable, not the list
    }
    if (!context.control) {
      if (!bare && hasAttr(element, 'tabindex') && tabIndexOf(element) >= 0) return 'focus';
      return !bare && (isBareLink(element, tag) || hasAction(element, true)) ? 'part' : '';
    }
    return !bare && isPart(element, tag, context, inner.reveal) ? 'part' : '';
  }

  /** A clickable area becomes one control, or a control followed by its inner controls; decided at its end. */
  addClickable(element, tag, source, inner) {
    if (!this.hasPlace(element, 'clickable', inner.placed, inner.reveal)) return;
    if (source === 'listener' && !DRAWN_TAGS.has(tag) && drawsItself(element, tag)) this.surfaces.push({ element, tag });
    const before = this.parts.slice();
    const mark = { lines: this.lines.length, controls: this.controls.length, frames: this.frames.length };
    const control = this.emit(element, tag, tag === 'canvas' ? 'canvas' : 'clickable', inner);
    if (source === 'part') namePart(control);
    inner.control = control;
    const owns = source === 'listener' && hasOwnListener(element, getComputedStyle(element), attr(element, 'role'));
    this.stack.push(() => {
      const held = this.controls.slice(mark.controls + 1).filter((other) => !other.dropped);
      const nested = held.length;
      const name = control.name;
      if (nested || control.cut) shorten(control);
      if (this.isNoise(control, source, nested, owns) || (nested && !ownText(name, held) && !(owns && this.hasRoom(control, held)))) {
        control.dropped = true;
        this.emitted.delete(element); // with a listener that becomes known later it may be a control
      } else if (!nested && !control.cut && this.frames.length === mark.frames) {
        this.lines.length = mark.lines;
        this.parts = [...before, { control, at: element }];
      }
    });
  }

  /** Whether a control has a place to click beside the controls in it. */
  hasRoom(control, held) {
    const area = (element) => {
      const box = boxOf(element);
      return box.width * box.height;
    };
    if (held.length === 1 && held.every((other) => CHECKABLE.has(other.role))) return false; // a box around a choice and its label
    const inside = held.filter((other) => other.depth === control.depth + 1);
    return inside.reduce((sum, other) => sum + area(other.element), 0) < FILLING * area(control.element);
  }

  isNoise(control, source, nested, owns) {
    if (source === 'focus') return nested > 0 || control.cut;
    if (source === 'listener' && nested > DELEGATES && !owns) return true;
    if (nested > 20) return true;
    const box = boxOf(control.element);
    const covers = box.width * box.height > 0.8 * innerWidth * innerHeight;
    return covers && (nested > 0 || !control.name || control.cut);
  }

  emit(element, tag, role, inner) {
    const full = attempt(() => fullName(element, tag, role, this.settings.nameChars, inner.reveal), '');
    const control = { element, tag, role, reveal: inner.reveal, opacity: inner.element === element ? inner.opacity : '', name: cut(full, this.settings.nameChars), uncut: '', cut: full.length > this.settings.nameChars,
      labelled: hasAttr(element, 'aria-label') || hasAttr(element, 'aria-labelledby'), states: [], cues: [], value: null, options: [],
      moreOptions: 0, title: '', depth: inner.control ? inner.control.depth + 1 : 0, frame: inner.frame, hash: inner.hash, dropped: false, id: this.controls.length, ordinal: 0 };
    control.title = attempt(() => descriptionOf(element, full), '');
    attempt(() => readState(control, this.settings), null);
    if (inner.reveal) control.states.push('shown-on-hover');
    if (inner.inert && !control.states.includes('disabled')) control.states.unshift('disabled');
    this.emitted.add(element);
    this.controls.push(control);
    this.parts.push({ control, at: element });
    return control;
  }
}

/** Whether it only holds the value of a custom control for the form: no pointer, key, label or assistive technology gets there. */
const isCopy = (element, tag, style) => style.pointerEvents === 'none' && LEAVES.has(tag) && attr(element, 'aria-hidden') === 'true' &&
  tabIndexOf(element) < 0 && labelsAround(element).length === 0;

/** The accessible name; a control that is hidden until a hover is named as if it were shown. */
function fullName(element, tag, role, limit, reveal) {
  const isNamed = hasAttr(element, 'aria-label') || hasAttr(element, 'aria-labelledby') || !FROM_CONTENT.has(role);
  return (reveal && !isNamed && contentText(element, limit, true)) || nameOf(element, tag, role, limit);
}

/** Names a part that its content does not name. */
function namePart(control) {
  const { element } = control;
  const named = ['aria-label', 'aria-labelledby', 'title'].some((name) => attr(element, name).trim()) || contentText(element, 10, true);
  const name = named ? '' : partName(element);
  if (!name) return;
  control.name = name;
  control.named = true;
}

/** The content follows as lines of its own, so the name only says which control this is. */
function shorten(control) {
  control.uncut = control.name; // keys of traces that were recorded before may have it
  control.name = cut(control.name, CONTAINER_NAME);
}

const hasHandler = (element) => HANDLERS.some((name) => hasAttr(element, name)) || attr(element, 'draggable') === 'true';

/** Whether an element has a visible box (it may be covered). */
function isDrawn(element) {
  const box = boxOf(element);
  return box.width >= 1 && box.height >= 1 && getComputedStyle(element).visibility === 'visible';
}

/** The text of a clickable area without its inner controls; if empty, the area only delegates to them. */
const ownText = (name, held) => held.reduce((text, control) => text.replace(control.name, ''), name).trim();

/** Ranks each control among those of its frame with the same role and name, in document order. */
function rankControls(controls) {
  const ranks = new Map();
  for (const control of controls) {
    if (control.dropped) continue;
    const key = `${control.frame}\n${control.role}\n${control.name}`;
    control.ordinal = ranks.get(key) ?? 0;
    ranks.set(key, control.ordinal + 1);
  }
}

/** 8 hex digits over what tends to stay: tag, type, id, name attribute, path of the address, roles of the ancestors. */
function digestOf(control) {
  const { element, tag, hash } = control;
  const id = attr(element, 'id');
  const stable = /\d{3}|[:.]/.test(id) ? '' : id; // generated ids change with every rendering
  const path = pathOf(attr(element, 'href'));
  const text = [tag, attr(element, 'type'), stable, attr(element, 'name'), path].join('\n');
  return fnv(text, hash).toString(16).padStart(8, '0');
}
