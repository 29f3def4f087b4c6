// A site that was rebuilt: in every document all ids are other ones, a banner stands on top, rows of tables and lists
// come in reverse order, and every row's content and every form has an extra wrapper. The page keeps working, because
// its own scripts and styles get the new ids: a lookup of an old id finds the element under the new one.
// The observer, which lives in a world of its own, sees the document as it is: changed.
(() => {
  const KEPT = new Set(['query', 'reward-display', 'sync-task-cover', 'click-canvas']); // MiniWoB++'s own furniture
  const renamed = (id) => {
    if (!id || KEPT.has(id) || /^n[a-p]{8}$/.test(id)) return id;
    let hash = 0x811c9dc5;
    for (const char of id) hash = Math.imul(hash ^ char.codePointAt(0), 0x01000193) >>> 0;
    const fresh = 'n' + [...hash.toString(16).padStart(8, '0')].map((d) => 'abcdefghijklmnop'[parseInt(d, 16)]).join('');
    names.set(fresh, id);
    return fresh;
  };
  const names = new Map(); // from new ids to old ones
  const oldName = (id) => names.get(id) ?? id;

  // Scripts of the page keep using the old ids.
  const LISTS = ['for', 'aria-labelledby', 'aria-describedby', 'aria-controls', 'aria-owns', 'form', 'list', 'headers'];
  const NAMING = new Set(['id', ...LISTS]);
  const get = Element.prototype.getAttribute;
  const set = Element.prototype.setAttribute;
  const byId = Document.prototype.getElementById;
  const inSelector = (text) => typeof text === 'string'
    ? text.replace(/#(-?[_a-zA-Z][\w-]*)/g, (all, id) => (KEPT.has(id) ? all : `:is(#${id},#${renamed(id)})`))
        .replace(/\[id=(["']?)([^\]"']+)\1\]/g, (all, _, id) => `:is([id="${id}"],[id="${renamed(id)}"])`)
    : text;
  Document.prototype.getElementById = function (id) {
    return byId.call(this, id) ?? byId.call(this, renamed(String(id)));
  };
  for (const kind of [Document, DocumentFragment, Element]) {
    for (const name of ['querySelector', 'querySelectorAll', 'matches', 'closest']) {
      const own = kind.prototype[name];
      if (own) kind.prototype[name] = function (text) { return own.call(this, inSelector(text)); };
    }
  }
  Element.prototype.getAttribute = function (name) {
    const value = get.call(this, name);
    return value && NAMING.has(String(name).toLowerCase()) ? value.split(/\s+/).map(oldName).join(' ') : value;
  };
  const id = Object.getOwnPropertyDescriptor(Element.prototype, 'id');
  Object.defineProperty(Element.prototype, 'id', { ...id, get() { return oldName(id.get.call(this)); } });

  // The markup.
  const rename = (element) => {
    const now = get.call(element, 'id');
    if (now && renamed(now) !== now) set.call(element, 'id', renamed(now));
    for (const name of LISTS) {
      const value = get.call(element, name);
      if (value && !(name === 'list' && element.localName !== 'input')) {
        set.call(element, name, value.split(/\s+/).map((one) => renamed(one)).join(' '));
      }
    }
  };
  const turned = new WeakSet();
  const reverse = (parent, rows) => {
    if (turned.has(parent) || rows.length < 2) return;
    turned.add(parent);
    const end = rows[rows.length - 1].nextSibling;
    for (const row of [...rows].reverse()) parent.insertBefore(row, end);
  };
  const isRow = (row) => row.localName === 'tr' && row.querySelector('td') && !row.querySelector('[rowspan]');
  const reorder = (parent) => {
    const children = [...parent.children];
    if (parent.localName === 'tbody') reverse(parent, children.filter(isRow));
    if (/^[uo]l$/.test(parent.localName)) reverse(parent, children.filter((one) => one.localName === 'li'));
    const cards = parent.localName === 'div' && children.length > 2 && children[0].className;
    if (cards && children.every((one) => one.localName === 'div' && one.className === cards)) reverse(parent, children);
  };
  const wrapped = new WeakSet();
  const wrap = (element) => {
    if (wrapped.has(element) || !/^(td|form)$/.test(element.localName) || !element.firstChild) return;
    wrapped.add(element);
    const div = document.createElement('div');
    div.className = 'inner';
    div.append(...element.childNodes);
    element.append(div);
  };
  const restyle = () => {
    for (const sheet of document.styleSheets) {
      let rules;
      try { rules = [...sheet.cssRules]; } catch { continue; }
      for (const rule of rules) {
        const text = rule.selectorText;
        if (text && text.includes('#') && !text.includes(':is(#')) rule.selectorText = inSelector(text);
      }
    }
  };
  const banner = () => {
    if (!document.body || window !== window.top || document.querySelector('.news-banner')) return;
    const bar = document.createElement('div');
    bar.className = 'news-banner';
    bar.style.cssText = 'padding:4px;background:#fe9;font:12px sans-serif';
    bar.innerHTML = 'We have a new look! <a href="#news">Read more</a> <button type="button">Got it</button>';
    document.body.prepend(bar);
  };
  const change = (root) => {
    const all = [root, ...root.querySelectorAll('*')].filter((one) => one.nodeType === 1);
    for (const one of all) rename(one);
    for (const one of all) if (WRAPS) wrap(one);
    for (const one of all) reorder(one);
  };
  const WRAPS = !location.pathname.startsWith('/miniwob/'); // its scripts address children by position
  const start = () => {
    change(document.documentElement);
    restyle();
    banner();
    new MutationObserver((records) => {
      const added = new Set(records.flatMap((record) => [...record.addedNodes, record.target]));
      for (const node of added) if (node.nodeType === 1 && node.isConnected) change(node);
      if ([...added].some((node) => /^(style|link)$/.test(node.localName ?? ''))) restyle();
    }).observe(document, { subtree: true, childList: true });
  };
  document.addEventListener('DOMContentLoaded', start, { once: true });
  window.addEventListener('load', restyle, { once: true });
})();
