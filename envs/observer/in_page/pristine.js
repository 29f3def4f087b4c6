// The getters and methods of the DOM, taken from the prototypes of this world.
// This code runs in an isolated world: the page can neither see it nor change its built-ins. But a page can shadow a
// property of a form, a frameset or the document by an element with its name (<input name=childNodes>,
// <img name=body>). So properties of nodes are never read directly, only through these functions.
// A getter throws for an element of another kind: check `htmlTag` first.

// Each is looked up at its first use: creating them all costs a millisecond or more in every new world.

const getter = (prototype, name) => {
  let get;
  return (object) => (get ??= Object.getOwnPropertyDescriptor(prototype, name).get).call(object);
};
const setter = (prototype, name) => {
  let set;
  return (object, value) => (set ??= Object.getOwnPropertyDescriptor(prototype, name).set).call(object, value);
};
const method = (prototype, name) => (object, ...args) => prototype[name].apply(object, args);

const nodeType = getter(Node.prototype, 'nodeType');
const firstChild = getter(Node.prototype, 'firstChild');
const nextSibling = getter(Node.prototype, 'nextSibling');
const parentNode = getter(Node.prototype, 'parentNode');
const parentElement = getter(Node.prototype, 'parentElement');
const isConnected = getter(Node.prototype, 'isConnected');
const textContent = getter(Node.prototype, 'textContent');
const ownerDocument = getter(Node.prototype, 'ownerDocument');
const baseOf = getter(Node.prototype, 'baseURI');
const getRootNode = (node) => Node.prototype.getRootNode.call(node);
const contains = method(Node.prototype, 'contains');
const dataOf = getter(CharacterData.prototype, 'data');
const hostOfRoot = getter(ShadowRoot.prototype, 'host');

const localName = getter(Element.prototype, 'localName');
const namespaceOf = getter(Element.prototype, 'namespaceURI');
const openRoot = getter(Element.prototype, 'shadowRoot');
const firstElement = getter(Element.prototype, 'firstElementChild');
const nextElement = getter(Element.prototype, 'nextElementSibling');
const previousElement = getter(Element.prototype, 'previousElementSibling');
const closest = method(Element.prototype, 'closest');
const checkVisibility = method(Element.prototype, 'checkVisibility');
const slotOf = getter(Element.prototype, 'assignedSlot');
const textSlotOf = getter(Text.prototype, 'assignedSlot');
const assignedNodes = method(HTMLSlotElement.prototype, 'assignedNodes');
const clientLeft = getter(Element.prototype, 'clientLeft');
const clientTop = getter(Element.prototype, 'clientTop');
const clientWidth = getter(Element.prototype, 'clientWidth');
const clientHeight = getter(Element.prototype, 'clientHeight');
const scrollWidth = getter(Element.prototype, 'scrollWidth');
const scrollHeight = getter(Element.prototype, 'scrollHeight');
const scrollLeft = getter(Element.prototype, 'scrollLeft');
const scrollTop = getter(Element.prototype, 'scrollTop');
const scrollBy = method(Element.prototype, 'scrollBy');
const scrollIntoView = method(Element.prototype, 'scrollIntoView');
const getClientRects = method(Element.prototype, 'getClientRects');
const outerHtml = getter(Element.prototype, 'outerHTML');
const removeNode = method(Element.prototype, 'remove');
const cloneOf = method(Node.prototype, 'cloneNode');
const attributeNames = method(Element.prototype, 'getAttributeNames');
const queryAll = method(Element.prototype, 'querySelectorAll');
const queryFirst = method(Element.prototype, 'querySelector');
const dispatch = method(EventTarget.prototype, 'dispatchEvent');
const listen = method(EventTarget.prototype, 'addEventListener');
const getAttribute = Element.prototype.getAttribute;
const attr = (element, name) => getAttribute.call(element, name) ?? '';
const hasAttr = (element, name) => getAttribute.call(element, name) !== null;
const hasAttributes = (element) => Element.prototype.hasAttributes.call(element);
const boxOf = (element) => Element.prototype.getBoundingClientRect.call(element);
const matches = (element, selector) => Element.prototype.matches.call(element, selector);

const rootElement = getter(Document.prototype, 'documentElement');
const doctypeOf = getter(Document.prototype, 'doctype');
const bodyOf = getter(Document.prototype, 'body');
const scroller = getter(Document.prototype, 'scrollingElement');
const titleOf = getter(Document.prototype, 'title');
const addressOf = getter(Document.prototype, 'URL');
const viewOf = getter(Document.prototype, 'defaultView');
const newRange = method(Document.prototype, 'createRange');
const execCommand = method(Document.prototype, 'execCommand');
const documentQueryAll = method(Document.prototype, 'querySelectorAll');
const animationsOf = method(Document.prototype, 'getAnimations');
const fragmentQueryAll = method(DocumentFragment.prototype, 'querySelectorAll');
const allIn = (root, selector) => (nodeType(root) === 9 ? documentQueryAll : fragmentQueryAll)(root, selector);
const modalOf = (page) => documentQuery(page, ':modal');

/** Properties of documents and shadow roots, which are on separate prototypes. */
const ofRoot = (make, name) => {
  const [document, root] = [make(Document.prototype, name), make(ShadowRoot.prototype, name)];
  return (object, ...args) => {
    if (nodeType(object) === 9) return document(object, ...args);
    return isShadowRoot(object) ? root(object, ...args) : null;
  };
};
/** A fragment inside a page is a shadow root. */
const isShadowRoot = (node) => nodeType(node) === 11 && isConnected(node);
const activeOf = ofRoot(getter, 'activeElement');
const elementAt = ofRoot(method, 'elementFromPoint');
const elementsAt = ofRoot(method, 'elementsFromPoint');
const sheetsOf = ofRoot(getter, 'styleSheets');
const adoptedSheets = ofRoot(getter, 'adoptedStyleSheets');
const byId = (root, id) => (nodeType(root) === 9 ? Document : DocumentFragment).prototype.getElementById.call(root, id);

const XHTML = 'http://www.w3.org/1999/xhtml';
const SVG = 'http://www.w3.org/2000/svg';
const isHtml = (element) => namespaceOf(element) === XHTML;
/** The local name of an HTML element; '' for SVG, MathML and unknown namespaces. */
const htmlTag = (element) => (isHtml(element) ? localName(element) : '');

/** Properties or methods of some HTML elements: `kinds` names the interface of each tag that has `name`. */
const accessors = (make, name, kinds) => {
  const made = new Map();
  return (tag) => {
    let accessor = made.get(tag);
    if (accessor === undefined) {
      accessor = Object.hasOwn(kinds, tag) ? make(globalThis[kinds[tag]].prototype, name) : null;
      made.set(tag, accessor);
    }
    return accessor;
  };
};
/** A property that some HTML elements have, each kind on its own prototype; undefined for all others. */
const ofKinds = (name, kinds) => {
  const of = accessors(getter, name, kinds);
  return (element) => of(htmlTag(element))?.(element);
};
/** The same for setters and methods. */
const runOfKinds = (make, name, kinds) => {
  const of = accessors(make, name, kinds);
  return (element, ...args) => of(htmlTag(element))?.(element, ...args);
};
const TEXT_FIELDS = { input: 'HTMLInputElement', textarea: 'HTMLTextAreaElement' };
const FIELDS = { ...TEXT_FIELDS, select: 'HTMLSelectElement' };
const BUTTONS_TOO = { ...FIELDS, button: 'HTMLButtonElement' };
const LABELLED = { ...BUTTONS_TOO, meter: 'HTMLMeterElement', output: 'HTMLOutputElement', progress: 'HTMLProgressElement' };
const FRAMED = { iframe: 'HTMLIFrameElement', frame: 'HTMLFrameElement' };
const typeOf = ofKinds('type', BUTTONS_TOO);
const valueOf = ofKinds('value', { ...BUTTONS_TOO, option: 'HTMLOptionElement' });
const labelsOf = ofKinds('labels', LABELLED);
const isDisabled = ofKinds('disabled', { ...BUTTONS_TOO, option: 'HTMLOptionElement', optgroup: 'HTMLOptGroupElement' });
const isReadOnly = ofKinds('readOnly', TEXT_FIELDS);
const isRequired = ofKinds('required', FIELDS);
const validityOf = ofKinds('validity', FIELDS);
const setValue = runOfKinds(setter, 'value', TEXT_FIELDS);
const selectText = runOfKinds(method, 'select', TEXT_FIELDS);
const caretOf = ofKinds('selectionStart', TEXT_FIELDS);
const setCaret = runOfKinds(method, 'setSelectionRange', TEXT_FIELDS);
const isMultiple = ofKinds('multiple', { select: 'HTMLSelectElement' });
const sizeOf = ofKinds('size', { select: 'HTMLSelectElement' });
const optionsOf = ofKinds('options', { select: 'HTMLSelectElement', datalist: 'HTMLDataListElement' });
const chosenOf = ofKinds('selectedOptions', { select: 'HTMLSelectElement' });
const setChosenIndex = runOfKinds(setter, 'selectedIndex', { select: 'HTMLSelectElement' });
const setChosen = runOfKinds(setter, 'selected', { option: 'HTMLOptionElement' });
const indexOf = ofKinds('index', { option: 'HTMLOptionElement' });
const optionLabel = ofKinds('label', { option: 'HTMLOptionElement', optgroup: 'HTMLOptGroupElement' });
const optionText = ofKinds('text', { option: 'HTMLOptionElement' });
const isChecked = ofKinds('checked', { input: 'HTMLInputElement' });
const isIndeterminate = ofKinds('indeterminate', { input: 'HTMLInputElement' });
const filesOf = ofKinds('files', { input: 'HTMLInputElement' });
const listOf = ofKinds('list', { input: 'HTMLInputElement' });
const isOpen = ofKinds('open', { details: 'HTMLDetailsElement' });
const labelTarget = ofKinds('control', { label: 'HTMLLabelElement' });
const frameDocument = ofKinds('contentDocument', FRAMED);
const frameAddress = ofKinds('src', FRAMED);
const methodOf = getter(HTMLFormElement.prototype, 'method');
const actionOf = getter(HTMLFormElement.prototype, 'action');
const SENDERS = { button: 'HTMLButtonElement', input: 'HTMLInputElement' };
const formOf = ofKinds('form', SENDERS);
const ownMethod = ofKinds('formMethod', SENDERS);
const ownAction = ofKinds('formAction', SENDERS);

/** A property of all HTML elements; `other` for elements of other namespaces. */
const ofHtml = (name, other) => {
  const get = getter(HTMLElement.prototype, name);
  return (element) => (isHtml(element) ? get(element) : other);
};
const offsetWidth = ofHtml('offsetWidth', 0);
const offsetHeight = ofHtml('offsetHeight', 0);
const innerText = ofHtml('innerText', '');
const editable = ofHtml('isContentEditable', false);
const htmlTabIndex = ofHtml('tabIndex', null);
const svgTabIndex = getter(SVGElement.prototype, 'tabIndex');
const tabIndexOf = (element) => htmlTabIndex(element) ?? (namespaceOf(element) === SVG ? svgTabIndex(element) : -1);
const focusOn = (element) => {
  const kind = isHtml(element) ? HTMLElement : namespaceOf(element) === SVG ? SVGElement : null;
  kind?.prototype.focus.call(element);
};
