// Reads a snapshot of a task page, see state.py. It changes nothing; the limits bound the result. Typed text may have
// become elements that shadow names of the DOM, so nodes are read by the getters of `pristine.js`, which precedes this
// code. An element that cannot be read is left out.
function snapshot([EPISODE, FIELDS, ITEMS, VALUE, TEXT]) {
  if (typeof core === 'undefined' || core.miraEpisode !== EPISODE) return null;
  const OURS = ['query', 'reward-display', 'sync-task-cover'].map(id => byId(document, id)).filter(x => x);
  const cut = text => String(text ?? '').replace(/\s+/g, ' ').trim().slice(0, VALUE);
  const body = bodyOf(document);
  const area = byId(document, 'area') ?? body;
  const each = (nodes, read) => [...nodes].flatMap(node => { try { return [read(node)]; } catch { return []; } });
  const shown = node => getClientRects(node).length > 0;
  const label = node => cut(innerText(labelsOf(node)?.[0] ?? node) || innerText(node) || attr(node, 'placeholder'));
  const chosen = node => [...chosenOf(node) ?? []].slice(0, FIELDS).map(option => cut(optionLabel(option)));
  const fields = each([...documentQueryAll(document, 'input, textarea, select')].slice(0, FIELDS), node => [
    htmlTag(node) === 'input' ? typeOf(node) : localName(node), attr(node, 'id'), label(node),
    String(valueOf(node) ?? '').slice(0, VALUE), !!isChecked(node), chosen(node), shown(node), activeOf(document) === node]);
  const all = selector => [...queryAll(body, selector)].filter(shown);
  const open = each(all('[aria-expanded=true], [aria-selected=true]').slice(0, FIELDS), node => cut(innerText(node)));
  const words = node => {
    let text = '';
    for (let at = firstChild(node); at; at = nextSibling(at)) if (nodeType(at) === 3) text += dataOf(at);
    return text;
  };
  const own = node => !firstElement(node) ? innerText(node)
    : attr(node, 'role') === 'menuitem' ? words(node) : ''; // its text is beside an icon
  const items = each(all('*').filter(node => !OURS.some(ours => contains(ours, node))), node => cut(own(node)))
    .filter(text => text).slice(0, ITEMS);
  const parts = all('[id]').slice(0, FIELDS).map(node => attr(node, 'id'));
  return [WOB_DONE_GLOBAL, WOB_RAW_REWARD_GLOBAL, WOB_REWARD_REASON && String(WOB_REWARD_REASON), fields, open, items,
    parts, String(innerText(area) ?? '').slice(0, TEXT)];
}
