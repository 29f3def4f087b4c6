// Finds the control that a click at a point reaches.

const MAX_FRAMES_IN_FRAMES = 50;

/** The control of the last observation at a point of the viewport of this process's top document: {id, box}, with the box as
 *  it is now. {frame, x, y} where an iframe of another process lies there, with the point in its viewport. {} where neither does. */
function controlAt(x, y) {
  if (!latest) return sent({});
  const ids = new Map(latest.controls.filter((control) => !control.dropped).map((control) => [control.element, control.id]));
  let page = document;
  for (let depth = 0; depth < MAX_FRAMES_IN_FRAMES; depth++) {
    const hit = deepest(page, x, y);
    const frame = hit ? latest.frames.findIndex((one) => one.element === hit) : -1;
    if (frame < 0) return sent(idOf(hit, ids));
    const box = boxOf(hit);
    const scale = scaleOf(hit, box);
    [x, y] = [(x - box.left) / scale - clientLeft(hit), (y - box.top) / scale - clientTop(hit)];
    const inner = documentOf(hit);
    if (!inner) return sent({ frame, x, y });
    page = inner;
  }
  return sent({});
}

/** The innermost control that holds the element, or whose label does. */
function idOf(hit, ids) {
  for (let node = hit; node && nodeType(node) === 1; node = flatUp(node)) {
    const id = ids.get(node) ?? ids.get(labelTarget(node));
    if (id !== undefined) return { id, box: attempt(() => topBox(latest.controls.find((control) => control.id === id).element), null) };
  }
  return {};
}
