// Roles, names, states and values of controls.
// Follows WAI-ARIA 1.2 and HTML-AAM as far as they help to act, and accname 1.2 (accname.js); deviations are documented.

const WIDGETS = new Set(('button link checkbox radio switch textbox searchbox combobox listbox option menuitem ' +
  'menuitemcheckbox menuitemradio tab treeitem slider spinbutton').split(' '));
const FROM_CONTENT = new Set(('button link checkbox radio switch option menuitem menuitemcheckbox menuitemradio tab ' +
  'treeitem clickable gridcell').split(' '));
const LANDMARKS = { __proto__: null, main: 'main', nav: 'navigation', form: 'form', dialog: 'dialog', table: 'table', tr: 'row',
  ul: 'list', ol: 'list', li: 'listitem', aside: 'complementary', header: 'banner', footer: 'contentinfo', fieldset: 'group' };
const INPUTS = { __proto__: null, button: 'button', submit: 'button', reset: 'button', image: 'button', checkbox: 'checkbox', radio: 'radio',
  range: 'slider', number: 'spinbutton', search: 'searchbox', email: 'textbox', tel: 'textbox', text: 'textbox',
  url: 'textbox', password: 'textbox' };
const OWN_ROLES = new Set(['button', 'textarea', 'summary', 'select', 'input']);
const TEXTUAL = new Set(['textbox', 'searchbox', 'combobox', 'spinbutton']);

/** The role by markup; '' if there is none. Inputs without an ARIA role use their type (file, date, color). */
function roleOf(element, tag) {
  if (!hasAttributes(element) && !OWN_ROLES.has(tag)) return LANDMARKS[tag] ?? '';
  const explicit = attr(element, 'role').trim().toLowerCase().split(/\s+/)[0];
  if (explicit && explicit !== 'none' && explicit !== 'presentation') {
    return tag === 'input' && !WIDGETS.has(explicit) ? nativeRole(element, tag) : explicit;
  }
  const native = nativeRole(element, tag);
  return explicit && !WIDGETS.has(native) ? '' : native; // a focusable element cannot be presentational
}

function nativeRole(element, tag) {
  switch (tag) {
    case 'a':
    case 'area':
      return hasAttr(element, 'href') ? 'link' : '';
    case 'button':
    case 'textarea':
      return tag === 'button' ? 'button' : 'textbox';
    case 'summary':
      return isDetails(parentNode(element)) ? 'button' : '';
    case 'select':
      return isMultiple(element) || sizeOf(element) > 1 ? 'listbox' : 'combobox';
    case 'input':
      return inputRole(element, typeOf(element));
    case 'video':
    case 'audio':
      return hasAttr(element, 'controls') ? tag : '';
    default:
      return isEditingHost(element) ? 'textbox' : LANDMARKS[tag] ?? '';
  }
}

function inputRole(element, type) {
  if (type === 'hidden') return '';
  return listOf(element) && TEXTUAL.has(INPUTS[type]) ? 'combobox' : INPUTS[type] ?? type;
}

const isDetails = (node) => node !== null && nodeType(node) === 1 && htmlTag(node) === 'details';

function isEditingHost(element) {
  const value = getAttribute.call(element, 'contenteditable');
  return value !== null && value.toLowerCase() !== 'false';
}

const isControl = (role, tag) => WIDGETS.has(role) || (tag === 'input' && role !== '') || role === 'video' || role === 'audio';

/** The uncut name: by accname; for a control without one by what is drawn in it, then by a technical identifier. */
function nameOf(element, tag, role, limit) {
  return statedName(element, tag, role, new Naming(limit, { drawn: true })) ||
    placeholderOf(element) || tooltipOf(element) ||
    drawnName(element, tag, role, limit) || describedName(element, tag, role);
}

/** What a field shows while it is empty. Editors state it on themselves or on their first paragraph, for a style sheet. */
function placeholderOf(element) {
  const stated = clean(attr(element, 'placeholder') || attr(element, 'aria-placeholder'));
  if (stated || !isEditingHost(element)) return stated;
  const first = firstElement(element);
  return clean(attr(element, 'data-placeholder') || (first ? attr(first, 'data-placeholder') : ''));
}

const TOOLTIPS = ('aria-description data-original-title data-bs-original-title data-bs-title data-tooltip data-tooltip-content ' +
  'data-tippy-content data-tip data-title mattooltip').split(' ');
const TITLED = ['title', ...TOOLTIPS].map((name) => `[${name}]`).join(',');
const ANY_TOOLTIP = TOOLTIPS.map((name) => `[${name}]`).join(',');
/** The text that a script shows as a tooltip, by the attributes of common libraries. */
const tooltipOf = (element) =>
  matches(element, ANY_TOOLTIP) ? clean(attr(element, TOOLTIPS.find((name) => attr(element, name)) ?? 'title')) : '';

/** Deviation from accname: text with aria-hidden, the address of a link, or an icon. */
function drawnName(element, tag, role, limit) {
  if (!FROM_CONTENT.has(role) || tag === 'input') return '';
  const text = contentText(element, limit);
  if (text) return text;
  const end = role === 'link' ? attributeWord(element) || addressEnd(element) : '';
  if (/[a-z]{3}/i.test(end)) return end;
  const icon = iconIn(element, tag);
  return icon && `icon: ${icon}`;
}

const DESCRIPTION = 60; // characters
/** What the title or tooltip adds to the name; '' if nothing. */
function descriptionOf(element, name) {
  if (!hasAttributes(element) || !matches(element, TITLED)) return '';
  const text = clean(attr(element, 'title')) || tooltipOf(element);
  return text && !name.toLowerCase().includes(text.toLowerCase()) ? cut(text, DESCRIPTION) : '';
}

const COLORS = { '255,0,0': 'red', '0,128,0': 'green', '0,0,255': 'blue', '255,255,0': 'yellow', '0,0,0': 'black',
  '255,255,255': 'white', '255,165,0': 'orange', '128,0,128': 'purple', '255,192,203': 'pink', '128,128,128': 'grey',
  '0,255,255': 'cyan', '0,255,0': 'lime', '165,42,42': 'brown', '255,0,255': 'magenta', '0,0,128': 'navy',
  '0,128,128': 'teal', '128,0,0': 'maroon', '128,128,0': 'olive', '192,192,192': 'silver' };
/** The name of a basic CSS colour, else its value; '' if it is transparent. */
function colorName(value) {
  const part = value.match(/[\d.]+/g);
  if (!part || (part.length > 3 && Number(part[3]) === 0)) return '';
  return COLORS[part.slice(0, 3).join(',')] ?? `rgb(${part.slice(0, 3).join(',')})`;
}

/** An address without query and fragment. */
const pathOf = (address) => address.slice(0, ((address + '#').search(/[?#]/)));

/** Deviation from accname: a control without a name is named by an attribute, its address, shape, class or colour. */
function describedName(element, tag, role) {
  if (namespaceOf(element) === SVG) return shapeName(element);
  const word = attributeWord(element);
  if (word) return word;
  if (role === 'link') return addressEnd(element);
  if (role !== 'clickable') return '';
  const color = colorName(getComputedStyle(element).backgroundColor);
  return color.startsWith('rgb') && !isSwatch(element) ? purposeOf(element) || color : color;
}

const attributeWord = (element) =>
  ['name', 'id'].map((name) => attr(element, name)).find((text) => /^[a-z][a-z _-]{0,30}$/i.test(text)) ?? '';

/** The last part of a link's path; '' for a script. */
function addressEnd(element) {
  const path = pathOf(attr(element, 'href'));
  return /^\s*javascript:/i.test(path) ? '' : cut(clean(path.split('/').filter(Boolean).pop() ?? ''), 40);
}

/** Whether its colour tells it from a sibling of the same kind. */
function isSwatch(element) {
  const kind = attr(element, 'class');
  const color = getComputedStyle(element).backgroundColor;
  for (let other = parentNode(element) && firstElement(parentNode(element)), seen = 0; other && seen < 20; other = nextElement(other), seen++) {
    if (other !== element && attr(other, 'class') === kind && getComputedStyle(other).backgroundColor !== color) return true;
  }
  return false;
}

const PURPOSES = ['data-action', 'data-testid', 'data-test', 'data-cy', 'data-qa', 'data-name', 'data-role', 'data-type', 'data-value'];
/** The words of an attribute or class that a programmer gave it; '' for a generated or a layout class. */
function purposeOf(element) {
  const words = [...PURPOSES.map((name) => attr(element, name)), ...attr(element, 'class').split(/\s+/, 8)];
  const word = words.find((text) => /^[a-z]{3,}(?:[-_][a-z]{2,}){0,3}$/i.test(text) && !LAYOUT.test(text));
  return word ? asWords(word) : '';
}
const LAYOUT = /^(?:row|col|flex|grid|block|inline|hidden|active|selected|disabled|clickable|pointer|container|wrapper|absolute|relative|rounded|border|shadow|box|div|item)$|^(?:css|jsx|sc|ng|is|has|js|bg|text|rounded|border|cursor|hover|flex|items|justify)-/i;

function shapeName(element) {
  for (const child of flatChildren(element)) {
    if (nodeType(child) === 1 && localName(child) === 'title') return clean(textContent(child));
  }
  const box = boxOf(element);
  const style = getComputedStyle(element);
  const color = colorName(style.fill) || colorName(style.stroke);
  return `${color} ${Math.round(box.width)}×${Math.round(box.height)}`.trim();
}

const isPassword = (element) => {
  if (oncePassword.has(element)) return true;
  const secret = typeOf(element) === 'password' || /password/i.test(attr(element, 'autocomplete')) ||
    (getComputedStyle(element).webkitTextSecurity ?? 'none') !== 'none';
  if (secret) oncePassword.add(element);
  return secret;
};

/** Fills states, value and options of a control; a password's value never leaves this function. */
function readState(control, settings) {
  const { element, tag, role } = control;
  const states = control.states;
  const aria = (name) => attr(element, 'aria-' + name);
  const input = tag === 'input' || tag === 'textarea';
  const native = input || tag === 'select' || tag === 'button';
  const checkable = tag === 'input' && ['checkbox', 'radio'].includes(typeOf(element));
  if (checkable ? isChecked(element) : aria('checked') === 'true' || aria('pressed') === 'true') states.push('checked');
  if (checkable ? isIndeterminate(element) : aria('checked') === 'mixed') states.push('unchecked-mixed');
  if ((native && matches(element, ':disabled')) || aria('disabled') === 'true') states.push('disabled');
  const open = tag === 'summary' ? String(isOpen(parentNode(element))) : aria('expanded');
  if (open === 'true') states.push('expanded');
  if (open === 'false') states.push('collapsed');
  if (aria('selected') === 'true') states.push('selected');
  if (activeOf(getRootNode(element)) === element) states.push('focused');
  if ((input && isReadOnly(element) && TEXTUAL.has(role)) || aria('readonly') === 'true') states.push('readonly');
  if ((native && isRequired(element)) || aria('required') === 'true') states.push('required');
  readValue(control, settings);
}

function readValue(control, settings) {
  const { element, tag, role } = control;
  if (tag === 'select') return readSelect(control, settings);
  if (tag === 'input' || tag === 'textarea') {
    if (isPassword(element)) {
      control.states.push('password');
      control.value = valueOf(element) ? '•••' : '';
    } else if (typeOf(element) === 'file') {
      control.value = Array.from(filesOf(element) ?? [], (file) => clean(file.name)).join(', ');
    } else if (role !== 'button' && !['checkbox', 'radio'].includes(typeOf(element))) {
      control.value = cut(clean(valueOf(element)), settings.nameChars);
    }
    const list = listOf(element);
    if (list) setOptions(control, optionsOf(list), (option) => clean(optionLabel(option) || valueOf(option)), settings);
  } else if (isEditingHost(element)) {
    control.value = cut(enteredText(element, settings.nameChars), settings.nameChars);
  } else if (role === 'combobox') {
    control.value = cut(contentText(element, settings.nameChars), settings.nameChars);
  } else if (hasAttr(element, 'aria-valuetext') || hasAttr(element, 'aria-valuenow')) {
    control.value = cut(clean(attr(element, 'aria-valuetext') || attr(element, 'aria-valuenow')), settings.nameChars);
  }
}

function readSelect(control, settings) {
  const options = optionsOf(control.element);
  const label = distinctLabel(firstOf(options, settings.maxOptions, labelOf));
  const chosen = firstOf(chosenOf(control.element), settings.nameChars, label); // more would be cut anyway
  control.value = cut(chosen.join(', '), settings.nameChars);
  setOptions(control, options, label, settings);
  control.barred = new Set(control.options.flatMap((_, i) => (isBarred(options[i]) ? [i] : [])));
}

const labelOf = (option) => clean(optionLabel(option) || optionText(option));
/** The label of an option after that of its group. */
function groupedLabel(option) {
  const group = parentElement(option);
  const name = group && htmlTag(group) === 'optgroup' ? clean(optionLabel(group)) : '';
  return name ? `${name}: ${labelOf(option)}` : labelOf(option);
}
/** Labels of options: with the group where several options have the same one of *labels*. */
function distinctLabel(labels) {
  const repeated = new Set(labels.filter((label, i) => labels.indexOf(label) !== i));
  return (option) => (repeated.has(labelOf(option)) ? groupedLabel(option) : labelOf(option));
}
/** Whether an option is disabled, regardless of its list. */
const isBarred = (option) => isDisabled(option) || matches(option, 'optgroup[disabled] > option');

function setOptions(control, options, label, settings) {
  control.options = firstOf(options, settings.maxOptions, (option) => cut(label(option), settings.nameChars));
  control.moreOptions = options.length - control.options.length;
}
