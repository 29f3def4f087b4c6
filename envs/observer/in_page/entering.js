// Operations that input events cannot do portably: selecting text or an option, filling a date, reading a field's state.

const FORMATTED = new Set(['date', 'time', 'month', 'week', 'datetime-local', 'range', 'color']);
const NO_TEXT = new Set(['checkbox', 'radio', 'button', 'submit', 'reset', 'image', 'file', 'hidden']);

const PRESSED_ONLY = new Set('button link tab menuitem menuitemcheckbox menuitemradio'.split(' '));

/** Returns the kind of a field and focuses it, because a click on a label or wrapper may not have done so. 'none' is a
 *  control that takes no text and whose click led to no other: a blank would press it again. */
function prepare(element) {
  if (!isConnected(element)) return 'gone';
  const tag = htmlTag(element);
  if (isDisabled(element)) return 'disabled';
  if (tag === 'input' && FORMATTED.has(typeOf(element))) return isReadOnly(element) ? 'readonly' : 'value';
  const text = tag === 'textarea' || (tag === 'input' && !NO_TEXT.has(typeOf(element)));
  if (!text && !editable(element)) return PRESSED_ONLY.has(roleOf(element, tag)) && !hasMovedFocus(element) ? 'none' : 'keys';
  if (isReadOnly(element)) return 'readonly';
  const active = activeOf(getRootNode(element));
  if (active !== element && !(active && contains(element, active))) focusOn(element);
  return tag === 'input' ? 'line' : 'lines';
}

/** Whether a click on a control gave the focus to a field for text, or to something outside the control. */
function hasMovedFocus(element) {
  const focused = focusNear(element);
  if (!focused || htmlTag(focused) === 'body') return false;
  return isTextField(focused) || !(contains(element, focused) || contains(focused, element));
}

/** Selects the content of a field; false if it is empty. */
function selectAll(element) {
  if (!editable(element)) {
    selectText(element);
    return valueOf(element) !== '' || !validityOf(element).valid;
  }
  const range = newRange(ownerDocument(element));
  const view = viewOf(ownerDocument(element));
  const selection = view.getSelection();
  range.selectNodeContents(element);
  selection.removeAllRanges();
  selection.addRange(range);
  return textContent(element) !== '';
}

function caretToEnd(element) {
  if (editable(element)) {
    const view = viewOf(ownerDocument(element));
    const selection = view.getSelection();
    selection.selectAllChildren(element);
    selection.collapseToEnd();
  } else if ((caretOf(element) ?? null) !== null) setCaret(element, valueOf(element).length, valueOf(element).length);
}

/** Dispatches the events that notify the page of a new value. */
function dispatchEntered(element) {
  dispatch(element, new Event('input', { bubbles: true, composed: true }));
  dispatch(element, new Event('change', { bubbles: true }));
}

/** Sets the value of a field whose keyboard input depends on the locale. If the value has the wrong format, returns false;
 *  the field then keeps what it had. */
function fillValue(element, value) {
  const before = valueOf(element);
  setValue(element, value);
  if (value !== '' && valueOf(element) === '') {
    setValue(element, before);
    return false;
  }
  dispatchEntered(element);
  return true;
}

/** Inserts text into this element only, with trusted input events; false if it does not have the focus. */
const insert = (element, text) =>
  activeOf(getRootNode(element)) === element && execCommand(ownerDocument(element), 'insertText', false, text);

const pageAddress = (element) => {
  const view = viewOf(ownerDocument(element));
  return storable(view.location.href);
};
const isFileInput = (element) => htmlTag(element) === 'input' && typeOf(element) === 'file';

/** Selects an option by label, label with its group, value, or label ignoring case; a multiple list keeps its other selected options. */
function chooseOption(element, requested, most) {
  const labelled = (some) => some.map(distinctLabel(some.map(labelOf)));
  if (htmlTag(element) !== 'select') return sent({ status: 'wrong' });
  if (isDisabled(element)) return sent({ status: 'disabled' });
  const name = clean(requested);
  const options = [...optionsOf(element)];
  const usable = options.filter((option) => !isBarred(option));
  const tests = [(option) => labelOf(option) === name, (option) => groupedLabel(option) === name,
    (option) => storable(valueOf(option)) === requested, (option) => labelOf(option).toLowerCase() === name.toLowerCase()];
  const among = (some) => tests.map((test) => some.find(test)).find((match) => match);
  const option = among(usable);
  if (!option && among(options)) return sent({ status: 'barred' });
  if (!option) return sent({ status: 'none', options: labelled(usable.slice(0, most)), total: usable.length });
  focusOn(element);
  if (isMultiple(element)) setChosen(option, true);
  else setChosenIndex(element, indexOf(option));
  dispatchEntered(element);
  return sent({ status: 'ok' });
}
