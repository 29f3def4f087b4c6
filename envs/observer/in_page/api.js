// The functions that the observer calls. They return plain data or, if requested, elements.

let latest = null; // the observation that refs belong to
let latestLines = [];
let latestPlace = ''; // address and title of the last observation
const UNKNOWN_DIGEST = '00000000';

const configured = (settings) => ({ skip: '', collapseRows: 40, nameChars: 160, maxOptions: 30, boxes: false, effects: false, walkMs: 2000, ...settings });

/** Observes the page: its text within `budget` characters, and its controls as parallel arrays. */
function observe(settings, budget, listed) {
  latest = new PageObservation(configured(settings)).run(MAX_NODES, settings.walkMs);
  latestLines = renderLines(latest);
  latestPlace = placeNow();
  const main = scroller(document) ?? rootElement(document); // null: a document that was opened and not written to
  latest.drawn = surfacesOf(latest);
  return sent({
    surfaces: latest.drawn,
    ...laidOut(budget, listed),
    url: location.href,
    title: clean(titleOf(document)),
    viewport: [innerWidth, innerHeight],
    scroll: [Math.round(scrollY), main ? Math.max(0, Math.round(scrollHeight(main) - innerHeight - scrollY)) : 0],
    nodes: latest.nodes,
    left: latest.left,
    unread: latest.unread,
    hosts: latest.hosts.length,
    frames: latest.frames.map((frame) => ({ remote: frame.remote, path: frame.path, open: frame.remote ? renderOpen(frame) : '' })),
  });
}

const DIFFERING = 40; // lines that differ, of which the observer is sent both versions
const placeNow = () => `${location.href}\n${titleOf(document)}`;
const withoutIds = (line) => line.text.replace(/\u0001\d+\u0005/g, '');

/** The lines that differ from those of the last observation, in pairs; null where they are many or their number differs. */
function differs() {
  if (!latest || latestPlace !== placeNow()) return null;
  const now = renderLines(new PageObservation(latest.settings).run(MAX_NODES, latest.settings.walkMs));
  if (now.length !== latestLines.length) return null;
  const pairs = [];
  for (let i = 0; i < now.length; i++) {
    const pair = [withoutIds(latestLines[i]), withoutIds(now[i])];
    if (pair[0] !== pair[1] && pairs.push(pair) > DIFFERING) return null;
  }
  return sent(pairs);
}

/** Lays out the last observation again with another budget, without walking the page. */
const relayOut = (budget, listed) => sent(laidOut(budget, listed));

function laidOut(budget, listed) {
  let laid = layOut(latest, latestLines, budget);
  let shown = new Set(idsIn(laid.text));
  for (let round = 0; round < 3 && cue(shown); round++) { // cues may push other lines in or out
    laid = laidAgain(latest, latestLines, budget, laid);
    shown = new Set(idsIn(laid.text));
  }
  const { text, full } = laid;
  const controls = latest.controls.filter((control) => !control.dropped);
  const reported = controls.filter((control) => shown.has(control.id) || listed-- > 0);
  return { text, full, total: controls.length, groups: latest.markers.length, controls: columns(reported, shown) };
}

/** Reads the cues of controls by id and writes them into the lines; false if there are no new ones. */
function cue(ids) {
  if (!readCues(latest, latest.controls.filter((control) => !control.dropped && ids.has(control.id)))) return false;
  renderLines(latest).forEach((line, i) => (latestLines[i].text = line.text)); // a cue never divides a line
  return true;
}

/** The same for all controls, before lines are searched that are not shown. */
const cueAll = () => cue({ has: () => true });

function idsIn(text) {
  const ids = [];
  for (const match of text.matchAll(/\u0001(\d+)\u0005/g)) ids.push(Number(match[1]));
  return ids;
}

function columns(controls, shown) {
  const boxes = latest.settings.boxes || latest.drawn.length > 0; // points are named where an area is drawn
  return {
    id: controls.map((c) => c.id),
    role: controls.map((c) => c.role),
    name: controls.map((c) => c.name),
    ordinal: controls.map((c) => c.ordinal),
    digest: controls.map((c) => attempt(() => digestOf(c), UNKNOWN_DIGEST)),
    frame: controls.map((c) => latest.documents[c.frame].path),
    tag: controls.map((c) => c.tag),
    states: controls.map((c) => c.states.join(' ')),
    cues: controls.some((c) => c.cues.length) ? controls.map((c) => c.cues.join(' ')) : null,
    value: controls.map((c) => c.value),
    title: controls.map((c) => c.title),
    options: controls.map((c) => c.options),
    shown: controls.map((c) => (shown.has(c.id) ? 1 : 0)),
    box: boxes ? controls.map((c) => attempt(() => topBox(c.element), null)) : null,
    effect: effectsOf(controls),
  };
}

/** The text of a line without refs and without the observer's backslashes. */
const plainText = (line) => line.text.replace(/\u0001\d+\u0005 /g, '').replace(/\\(.)/g, '$1');

/** Continues a walk that stopped, for at most the time of one observation. */
function walkOn() {
  for (const end = performance.now() + latest.settings.walkMs; latest.left && performance.now() < end; ) {
    latest.run(MAX_NODES, end - performance.now());
    latestLines = renderLines(latest);
  }
}

/** Lines that contain `text`, ignoring case and spacing, up to `limit` characters. */
function find(text, limit) {
  const query = clean(text).toLowerCase();
  walkOn();
  cueAll();
  const hits = query ? latestLines.filter((line) => !line.fixed && plainText(line).toLowerCase().includes(query)) : [];
  return answerWith(hits.map((line) => line.text), limit, latest.left);
}

/** All lines, for a search by the observer; lines that cannot be found are empty. */
function lines() {
  walkOn();
  cueAll();
  return JSON.stringify({ texts: latestLines.map((line) => (line.fixed ? '' : plainText(line))) });
}

/** The lines with these indexes, up to `limit` characters. */
const tellLines = (indexes, limit) => answerWith(indexes.map((index) => latestLines[index].text), limit, latest.left);

/** Rows of group `id` from row `start` (1-based), up to `limit` characters. */
function expand(id, start, limit) {
  const group = latest && latest.markers[id];
  if (!group) return null;
  cueAll();
  const texts = group.rows.slice(start - 1).map((row) => group.lines.slice(row.from, row.to).map((line) => line.text).join('\n'));
  return sent({ ...JSON.parse(answerWith(texts, limit)), kind: group.kind, rows: group.rows.length });
}

/** The answer with the first `texts`, up to `limit` characters, and the controls in them. */
function answerWith(texts, limit, left = 0) {
  let count = 0;
  let chars = 0;
  while (count < texts.length && (count === 0 || chars + texts[count].length + 1 <= limit)) chars += texts[count++].length + 1;
  const text = texts.slice(0, count).join('\n');
  const ids = new Set(idsIn(text));
  return sent({ text, count, left, of: texts.length, controls: columns(latest.controls.filter((c) => ids.has(c.id)), ids) });
}

/** Elements of the last observation about which the observer queries the browser. */
const hosts = () => latest.hosts;
const frameHolder = (index) => latest.frames[index].element;

/** The position of the content of a cross-process iframe, in CSS pixels of this process's top viewport. */
function frameOrigin(index) {
  const frame = frameHolder(index);
  const [left, top] = outOf(frame, 0, 0);
  return sent(toTop(frame, left, top));
}

function adoptRoots(...pairs) {
  for (let i = 0; i < pairs.length; i += 2) closedRoots.set(pairs[i], pairs[i + 1]);
}

/** Marks elements with listeners; returns how many were unknown, i.e. whether the page must be observed again. */
function adoptListeners(...nodes) {
  let news = 0;
  for (const node of nodes) {
    if (!node || nodeType(node) !== 1 || listening.has(node)) continue;
    listening.add(node);
    if (!latest || !latest.emitted.has(node)) news++;
  }
  return news;
}

/** Marks elements that listen for the pointer coming over them; returns how many hold hidden parts. */
function adoptHovering(...nodes) {
  let holding = 0;
  for (const node of nodes) {
    if (!node || nodeType(node) !== 1) continue;
    hovering.add(node);
    if (!isRootTag(node) && firstOf(queryAll(node, INDEPENDENT), 20, (part) => part).some((part) => !isDrawn(part) || getComputedStyle(part).opacity === '0')) holding++;
  }
  return holding;
}
