// Scrolls the page, or the scrollable box around an element, without input.

const hasRoom = (element, dx) => (dx ? scrollWidth(element) > clientWidth(element) + 1 : scrollHeight(element) > clientHeight(element) + 1);

/** The element that scrolls a whole document. */
const rootScroller = (page) => scroller(page) ?? rootElement(page);

/** Whether a box scrolls in a direction and holds more than it shows. The overflow of a body applies to the viewport,
 *  unless the root element has its own. */
function canScroll(element, dx) {
  if (!hasRoom(element, dx)) return false;
  const page = ownerDocument(element);
  if (element === rootScroller(page)) return true;
  if (element === bodyOf(page) && getComputedStyle(rootElement(page)).overflowY === 'visible') return false;
  return clientHeight(element) > 0 && /auto|scroll/.test(getComputedStyle(element)[dx ? 'overflowX' : 'overflowY']);
}

function scrollOne(element, dx, dy) {
  const before = [scrollLeft(element), scrollTop(element)];
  scrollBy(element, { left: dx * clientWidth(element), top: dy * clientHeight(element), behavior: 'instant' });
  return before[0] !== scrollLeft(element) || before[1] !== scrollTop(element);
}

/** The largest box that can scroll, also in open and known closed shadow roots; null if there is none. */
function largestBox(dx) {
  let [largest, most] = [null, 0];
  const roots = [document];
  while (roots.length) {
    for (const element of allIn(roots.pop(), '*')) {
      const inner = shadowOf(element);
      if (inner) roots.push(inner);
      const area = clientWidth(element) * clientHeight(element);
      if (area > most && canScroll(element, dx)) [largest, most] = [element, area];
    }
  }
  return largest;
}

/** Scrolls the page, else its largest scrollable box; true if something moved. */
function scrollPage(dx, dy) {
  const root = rootScroller(document);
  const target = root && canScroll(root, dx) ? root : largestBox(dx);
  return target !== null && scrollOne(target, dx, dy);
}

/** Scrolls the element or the nearest box around it that can scroll; true if something moved. */
function scrollAround(element, dx, dy) {
  for (let box = element; box && nodeType(box) === 1; box = flatAbove(box)) {
    if (canScroll(box, dx)) return scrollOne(box, dx, dy);
  }
  return false;
}
