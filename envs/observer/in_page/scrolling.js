// Scrolls the page, or the scrollable box around an element, without input.

const hasRoom = (element, dx) => (dx ? scrollWidth(element) > clientWidth(element) + 1 : scrollHeight(element) > clientHeight(element) + 1);

function scrollOne(element, dx, dy) {
  const before = [scrollLeft(element), scrollTop(element)];
  scrollBy(element, { left: dx * clientWidth(element), top: dy * clientHeight(element), behavior: 'instant' });
  return before[0] !== scrollLeft(element) || before[1] !== scrollTop(element);
}

/** Scrolls the page, else its largest scrollable box; true if something moved. */
function scrollPage(dx, dy) {
  let target = scroller(document) ?? rootElement(document);
  if (!target) return false;
  if (!hasRoom(target, dx)) {
    let best = 0;
    for (const element of documentQueryAll(document, '*')) {
      const area = clientWidth(element) * clientHeight(element);
      if (area > best && hasRoom(element, dx) && /auto|scroll/.test(getComputedStyle(element)[dx ? 'overflowX' : 'overflowY'])) {
        best = area;
        target = element;
      }
    }
  }
  return scrollOne(target, dx, dy);
}

/** Scrolls the element or its nearest scrollable ancestor; true if something moved. */
function scrollAround(element, dx, dy) {
  let target = element;
  while (parentElement(target) && !(hasRoom(target, dx) && clientHeight(target))) target = parentElement(target);
  return scrollOne(target, dx, dy);
}
