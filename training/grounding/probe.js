/* For each box [x, y, width, height] in CSS pixels of the view: the element of that box that lies on top at its centre.

Asks `elementFromPoint`, in shadow trees and in frames of the same origin as well. `covered` is the number of the box's
inner points at which another element lies on top. Null: no element of the box lies on top at the centre. */
boxes => {
  const at = (x, y) => {
    let [root, left, top, found] = [document, 0, 0, null];
    for (;;) {
      const element = root.elementFromPoint(x - left, y - top);
      if (!element || element === found?.element) return found;
      found = {element, left, top};
      if (element.shadowRoot) {
        root = element.shadowRoot;
      } else if (element.localName === 'iframe' && element.contentDocument) {
        const frame = element.getBoundingClientRect();
        left += frame.left + element.clientLeft;
        top += frame.top + element.clientTop;
        root = element.contentDocument;
      } else {
        return found;
      }
    }
  };
  const above = node => node.parentElement ?? (node.parentNode instanceof ShadowRoot ? node.parentNode.host : null);
  const near = (one, other) => Math.abs(one - other) <= 1;
  const boxed = (found, [x, y, width, height]) => {
    for (let node = found?.element; node; node = above(node)) {
      const box = node.getBoundingClientRect();
      if (near(box.left + found.left, x) && near(box.top + found.top, y) && near(box.width, width) && near(box.height, height))
        return node;
    }
    return null;
  };
  const within = (node, owner) => {
    for (; node; node = above(node)) if (node === owner) return true;
    return false;
  };
  const written = node => {
    if (node.matches('input[type=checkbox], input[type=radio], input[type=range], input[type=color]')) return '';
    if (node.matches('input, textarea')) return node.value || node.placeholder || '';
    return node.matches('select') ? node.selectedOptions[0]?.label ?? '' : node.innerText ?? '';
  };
  return boxes.map(box => {
    const [x, y, width, height] = box;
    const [left, top] = [Math.max(0, x), Math.max(0, y)];
    const [right, bottom] = [Math.min(innerWidth, x + width), Math.min(innerHeight, y + height)];
    const point = (across, down) => at(left + (right - left) * across, top + (bottom - top) * down);
    const owner = boxed(point(0.5, 0.5), box);
    if (!owner) return null;
    const inner = [[0.25, 0.5], [0.75, 0.5], [0.5, 0.25], [0.5, 0.75]].map(([across, down]) => point(across, down));
    return {
      control: owner.dataset?.control ?? '',
      text: /[\p{L}\p{N}]/u.test(written(owner)),
      covered: inner.filter(found => !within(found?.element, owner)).length,
    };
  });
}
