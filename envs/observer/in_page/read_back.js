// What a field holds after text was typed into it, and another way to enter text where keys were lost.

const TEXT_EVENTS = 1, KEY_EVENTS = 2, CHANGE_EVENTS = 4; // the groups of envs/observer/text_listeners.py
const TEXT_PAUSE = 60; // ms that a page gets at most to render a field again

const isTextField = (element) => {
  const tag = htmlTag(element);
  return tag === 'textarea' || (tag === 'input' && !NO_TEXT.has(typeOf(element))) || editable(element);
};

/** The focused element of the document of `field`, inside open shadow roots. */
function focusNear(field) {
  let focused = activeOf(ownerDocument(field));
  for (let root = focused && openRoot(focused); root && activeOf(root); root = openRoot(focused)) focused = activeOf(root);
  return focused;
}

/** Whether a listener in `nodes`, with the group at the same place, listens to text typed into `field` (null: the focused one). */
function listensToText(groups, entered, field, ...nodes) {
  const root = rootElement(document);
  const at = field ?? (root && focusNear(root));
  if (!at || (!field && !isTextField(at))) return false;
  if (!isConnected(at)) return true; // it was rendered again
  const path = new Set();
  for (let node = at; node; node = eventParent(node)) path.add(node);
  const counts = entered ? TEXT_EVENTS | KEY_EVENTS | CHANGE_EVENTS : TEXT_EVENTS | KEY_EVENTS;
  return nodes.some((node, i) => {
    if (!node || !path.has(node)) return false;
    const isTop = nodeType(node) === 9 || ['html', 'body'].includes(htmlTag(node));
    return (groups[i] & (isTop ? TEXT_EVENTS : counts)) !== 0;
  });
}

/** 'here' while the field has the focus; 'other' if another field for text has it; 'gone' or 'lost' otherwise. */
function focusState(field) {
  if (!isConnected(field)) return 'gone';
  const focused = focusNear(field);
  if (focused === field || (focused && contains(field, focused))) return 'here';
  return focused && isTextField(focused) ? 'other' : 'lost';
}

/** Focuses the field with the caret at its end; false if it does not take the focus. */
function resumeEntry(field) {
  if (focusState(field) !== 'here') focusOn(field);
  caretToEnd(field);
  return focusState(field) === 'here';
}

const letters = (part) => part.normalize('NFKC').toLowerCase().replace(/[^\p{L}\p{N}]/gu, '');
const heldBy = (field) => (editable(field) ? innerText(field).replaceAll('\u00a0', ' ').replace(/\n+$/, '') : valueOf(field) ?? '');
const evenSpaced = (text) => text.replace(/\s+/g, ' ').trim();

/** Whether `held` has no letter or digit that `typed` lacks. */
function isMadeOf(held, typed) {
  const left = new Map();
  for (const one of typed) left.set(one, (left.get(one) ?? 0) + 1);
  for (const one of held) {
    if (!left.get(one)) return false;
    left.set(one, left.get(one) - 1);
  }
  return true;
}

/** Whether only letters, or only digits, are missing in `held`: what filters leave out. */
function isFiltered(held, typed) {
  const digits = (text) => text.replace(/\P{N}/gu, '');
  const words = (text) => text.replace(/\P{L}/gu, '');
  return (held === digits(typed) || held === words(typed)) && held !== typed;
}

/** How what a field holds relates to what was typed: 'same', 'empty', 'changed' (formatted, cut, completed), 'lost', 'other'. */
function compareHeld(field, text, cleared) {
  let [held, typed] = [heldBy(field).replace(/\r\n?/g, '\n'), text.replace(/\r\n?/g, '\n')];
  if (editable(field)) [held, typed] = [evenSpaced(held), evenSpaced(typed)];
  if (cleared ? held === typed : held.endsWith(typed)) return 'same';
  if (!held) return 'empty';
  if (!cleared) return letters(held).endsWith(letters(typed)) ? 'changed' : 'other';
  const [has, meant] = [letters(held), letters(typed)];
  const most = Number(attr(field, 'maxlength') || -1);
  if (has === meant || has.startsWith(meant) || Number(held) === Number(typed) || held.length === most) return 'changed';
  return has && isMadeOf(has, meant) && !isFiltered(has, meant) ? 'lost' : 'other';
}

/** Waits until the page had the time to render the field again, then compares; the value of a secret is not returned. */
async function readBack(field, text, cleared, secret, patient) {
  await new Promise((done) => {
    setTimeout(done, patient ? TEXT_PAUSE : 0);
    if (patient) requestAnimationFrame(() => requestAnimationFrame(done));
  });
  if (!isConnected(field)) return sent({ holds: 'gone', start: 0, value: null });
  const holds = compareHeld(field, text, cleared);
  const held = heldBy(field);
  const hidden = secret || isPassword(field);
  const start = cleared && held !== '' && held.length < text.length && text.startsWith(held) ? [...held].length : 0;
  return sent({ holds, start, value: hidden ? null : cut(clean(held), 120) });
}

/**
 * Puts the whole text into the field at once, with the events of one key. The value is set by the prototype's setter: so
 * frameworks that keep a copy of the value notice. False if the field takes no such value; it then keeps what it had.
 */
function enterAtOnce(field, text) {
  if (editable(field)) {
    selectAll(field);
    return insert(field, text);
  }
  const [before, key] = [valueOf(field), { bubbles: true, composed: true, key: text.slice(-1) }];
  setValue(field, text);
  if (valueOf(field) === '') {
    setValue(field, before);
    return false;
  }
  dispatch(field, new KeyboardEvent('keydown', key));
  dispatch(field, new InputEvent('input', { bubbles: true, composed: true, data: text, inputType: 'insertReplacementText' }));
  dispatch(field, new KeyboardEvent('keyup', key));
  if (isConnected(field)) dispatch(field, new Event('change', { bubbles: true }));
  return true;
}
