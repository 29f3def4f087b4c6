// One look at a task page, see state.py. Reads only; the limits bound what comes back.
([EPISODE, FIELDS, ITEMS, VALUE, TEXT]) => {
  if (typeof core === 'undefined' || core.miraEpisode !== EPISODE) return null;
  const OURS = ['query', 'reward-display', 'sync-task-cover'].map(id => document.getElementById(id)).filter(x => x);
  const cut = text => String(text ?? '').replace(/\s+/g, ' ').trim().slice(0, VALUE);
  const area = document.getElementById('area') ?? document.body;
  const shown = node => node.getClientRects().length > 0;
  const label = node => cut(node.labels?.[0]?.innerText || node.innerText || node.placeholder || '');
  const fields = [...document.querySelectorAll('input, textarea, select')].slice(0, FIELDS).map(node => [
    node.tagName === 'SELECT' || node.tagName === 'TEXTAREA' ? node.tagName.toLowerCase() : node.type,
    node.id, label(node), String(node.value ?? '').slice(0, VALUE), !!node.checked,
    node.tagName === 'SELECT' ? [...node.selectedOptions].slice(0, FIELDS).map(o => cut(o.label)) : [],
    shown(node), document.activeElement === node]);
  const open = [...document.querySelectorAll('[aria-expanded=true], [aria-selected=true]')]
    .filter(shown).slice(0, FIELDS).map(node => cut(node.innerText));
  const words = node => [...node.childNodes].map(each => each.nodeType === Node.TEXT_NODE ? each.data : '').join('');
  const own = node => !node.childElementCount ? node.innerText
    : node.getAttribute('role') === 'menuitem' ? words(node) : ''; // its words stand beside an icon
  const items = [...document.body.querySelectorAll('*')]
    .filter(node => shown(node) && !OURS.some(ours => ours.contains(node)))
    .map(node => cut(own(node))).filter(text => text).slice(0, ITEMS);
  const parts = [...document.body.querySelectorAll('[id]')].filter(shown).slice(0, FIELDS).map(node => node.id);
  return [WOB_DONE_GLOBAL, WOB_RAW_REWARD_GLOBAL, WOB_REWARD_REASON && String(WOB_REWARD_REASON), fields, open, items,
    parts, String(area.innerText ?? '').slice(0, TEXT)];
}
