// Selects the lines to show: all if they fit, else those near the viewport; markers count the others.
// Refs, frames and groups are marks (kind, number, end), which the observer numbers across processes.

const REF = '\u0001';
const FRAME = '\u0002';
const REMOTE = '\u0003';
const GROUP = '\u0004';
const END = '\u0005';
const ROW_CHARS = 1500; // a longer row is hidden line by line
const UNREADABLE = '(this line could not be read)';
const LOOSE = { kind: 'line', rows: 0 };

function renderControl(control) {
  let text = `${REF}${control.id}${END} ${control.role} ${quoted(control.name)}`;
  if (control.value && !isNamedByValue(control)) text += ` = ${quoted(control.value)}`;
  if (control.states.length) text += ' ' + control.states.join(' ');
  if (control.cues.length) text += ` (${control.cues.join(' ')})`;
  if (control.title) text += ` title ${quoted(control.title)}`;
  if (control.options.length) {
    const shown = (option, i) => quoted(option) + (control.barred && control.barred.has(i) ? ' (disabled)' : '');
    text += ' options: ' + control.options.map(shown).join(' ');
    if (control.moreOptions) text += ` … ${control.moreOptions} more`;
  }
  return text;
}

/** Whether a drop-down is named by the part that shows its value, as Select2's are. */
const isNamedByValue = ({ role, tag, name, value }) => role === 'combobox' && tag !== 'input' && tag !== 'select' && name === value;

const renderOpen = (frame) =>
  `--- frame ${FRAME}${frame.index}${END} ${quoted(frame.title)} ${escaped(cut(clean(frame.url), 200)).replace(/ /g, '%20')}`;

/** The text of a line, divided if it is long; cells are joined by ` | `, controls by two spaces. */
function renderLine(line) {
  if (line.open) return [line.open.remote ? `${REMOTE}${line.open.index}${END}` : renderOpen(line.open)];
  if (line.behind) return [`--- behind the dialog: ${line.behind} ${line.behind > 1 ? 'controls' : 'control'}, not usable until it is closed`];
  if (line.close) return line.close.remote ? [] : [`--- end frame ${FRAME}${line.close.index}${END}`];
  const cells = [];
  let cell = [];
  let icon = '';
  let heading = false;
  let text = '';
  const endText = () => {
    text = text.replace(/ +/g, ' ').trim();
    if (text) cell.push(escaped(text));
    text = '';
  };
  const endCell = () => {
    endText();
    if (icon && !cell.length) cell.push(`icon ${quoted(icon)}`); // it may be the whole message, as a tick in a table
    cells.push(cell.join('  '));
    cell = [];
    icon = '';
  };
  for (const part of line.parts) {
    if (part.text) text += part.text;
    else if (part.space) text += ' ';
    else if (part.icon) {
      text += ' ';
      icon ||= part.icon;
    }
    else if (part.heading) heading = true;
    else if (part.cell) {
      endCell();
    } else if (part.image) {
      endText();
      cell.push(`image ${quoted(part.image)}`);
    } else if (!part.control.dropped) {
      endText();
      cell.push(renderControl(part.control));
    }
  }
  endCell();
  if (cells.length > 1 && cells[0] === '') cells.shift();
  while (cells.length > 1 && !cells[cells.length - 1]) cells.pop();
  const rendered = cells.join(' | ');
  if (!rendered) return [];
  return broken(heading ? '# ' + rendered : escapedStart(rendered));
}

/** Breaks a long line at spaces between words, never inside a control. */
function broken(text) {
  if (text.length <= LINE_CHARS || text.includes(REF)) return [text];
  const lines = [];
  let rest = text;
  while (rest.length > LINE_CHARS) {
    const space = rest.lastIndexOf(' ', LINE_CHARS);
    const end = space > LINE_CHARS / 2 ? space : LINE_CHARS - (/[\ud800-\udbff\\]/.test(rest[LINE_CHARS - 1]) ? 1 : 0);
    lines.push(rest.slice(0, end));
    rest = escapedStart(rest.slice(end).trimStart());
  }
  if (rest) lines.push(rest);
  return lines;
}

/** Turns walked lines into text lines: {text, group, row, at, frame}. */
function renderLines(observation) {
  const lines = [];
  for (const line of observation.lines) {
    for (const text of attempt(() => renderLine(line), [UNREADABLE])) {
      lines.push({ text, at: line.at, frame: line.frame, group: line.group ?? null, row: line.row ?? 0, fixed: !!(line.open || line.close || line.behind), shown: true });
    }
  }
  return lines;
}

/** The lines to show within `budget` characters, with markers for the hidden ones. */
function layOut(observation, lines, budget) {
  const full = lines.reduce((sum, line) => sum + line.text.length + 1, 0);
  for (const line of lines) line.shown = true;
  observation.markers = [];
  if (full <= budget) return { text: lines.map((line) => line.text).join('\n'), full };
  let text = '';
  let limit = budget - 80;
  for (let round = 0; round < 6; round++) { // markers use up budget too, which is known only after they are set
    choose(observation, lines, limit);
    text = withMarkers(observation, lines);
    if (text.length <= budget) break;
    limit -= text.length - budget + 40;
  }
  return { text, full };
}

/** The layout of the same lines after their texts grew a little; they are chosen again only if they no longer fit. */
function laidAgain(observation, lines, budget, laid) {
  if (laid.full <= budget) return layOut(observation, lines, budget);
  const text = withMarkers(observation, lines);
  return text.length <= budget ? { text, full: laid.full } : layOut(observation, lines, budget);
}

function withMarkers(observation, lines) {
  const out = [];
  observation.markers = [];
  for (let i = 0; i < lines.length; ) {
    const group = lines[i].marker;
    if (!group) {
      out.push(lines[i++].text);
      continue;
    }
    const from = i;
    while (i < lines.length && lines[i].marker === group) i++;
    showRun(observation, lines, from, i, out);
  }
  return out.join('\n');
}

function showRun(observation, lines, from, to, out) {
  const rows = [];
  for (let i = from; i < to; i++) {
    const last = rows[rows.length - 1];
    if (last && lines[i].marker !== LOOSE && last.row === lines[i].row) last.to = i + 1;
    else rows.push({ row: lines[i].row, from: i, to: i + 1 });
  }
  const first = rows.findIndex((row) => lines[row.from].shown);
  const last = rows.findLastIndex((row) => lines[row.from].shown);
  for (let i = from; i < to; i++) if (lines[i].shown) out.push(lines[i].text);
  const shown = first < 0 ? 'shown none' : `shown ${first + 1}-${last + 1}`;
  if (first === 0 && last === rows.length - 1) return;
  const id = observation.markers.length;
  observation.markers.push({ rows, lines, kind: lines[from].marker.kind });
  const mark = `${GROUP}${id}${END}`;
  out.push(`… ${mark}: ${lines[from].marker.kind} ×${rows.length}, ${shown} (expand ${mark} or find text)`);
}

/** Priority: lines in the viewport, then lines outside groups, then rows of groups, each by distance. */
function choose(observation, lines, limit) {
  const units = unitsOf(lines);
  const offsets = observation.documents.map((entry) => frameOffset(observation, entry));
  const places = new Map(); // all lines of a long text have the same place
  for (const unit of units) {
    const { at } = unit.line;
    if (!places.has(at)) places.set(at, attempt(() => placeOf(at), NOWHERE));
    const box = places.get(at);
    const top = box.top + offsets[unit.line.frame];
    unit.away = Math.max(0, top - innerHeight, -(top + box.height));
    unit.order = unit.away === 0 ? 0 : unit.grouped ? 2 : 1;
  }
  const ranked = units.slice().sort((a, b) => a.order - b.order || a.away - b.away || a.from - b.from);
  const filled = [false, false, false];
  let left = limit;
  for (const unit of ranked) {
    unit.shown = unit.line.fixed || (!filled[unit.order] && unit.chars <= left);
    if (unit.shown) left -= unit.chars;
    else if (unit.order) filled[unit.order] = true; // a farther line is not preferred for being short, which would make holes
  }
  keepContiguous(units);
  markHidden(lines, units);
}

function unitsOf(lines) {
  const units = [];
  for (let i = 0; i < lines.length; i++) {
    const line = lines[i];
    const last = units[units.length - 1];
    if (line.group && last && last.group === line.group && last.row === line.row) {
      last.to = i + 1;
      last.chars += line.text.length + 1;
    } else {
      units.push({ line, group: line.group, row: line.row, from: i, to: i + 1, chars: line.text.length + 1, grouped: !!line.group, shown: false });
    }
  }
  return units;
}

/** The shown rows of a group form one interval, as in `shown 8-20`. */
function keepContiguous(units) {
  const groups = new Map();
  for (const unit of units) {
    if (!unit.grouped) continue;
    if (!groups.has(unit.group)) groups.set(unit.group, []);
    groups.get(unit.group).push(unit);
  }
  for (const rows of groups.values()) {
    let best = [0, 0];
    for (let i = 0; i < rows.length; i++) {
      if (!rows[i].shown) continue;
      const from = i;
      while (i < rows.length && rows[i].shown) i++;
      if (i - from > best[1] - best[0]) best = [from, i];
    }
    rows.forEach((row, i) => (row.shown = i >= best[0] && i < best[1]));
  }
}

/** Assigns a marker to every line: its group, or LOOSE for consecutive hidden lines outside groups. */
function markHidden(lines, units) {
  for (const unit of units) {
    for (let i = unit.from; i < unit.to; i++) {
      lines[i].shown = unit.shown;
      lines[i].marker = unit.grouped ? unit.group : unit.shown ? null : LOOSE;
    }
  }
}

const NOWHERE = { top: 0, height: 0 };
const ruler = new Range();
/** The box of a line's first element, or of its text if that is a small part of a large element. */
function placeOf(node) {
  if (nodeType(node) === 1) return boxOf(node);
  const parent = flatParent(node);
  if (parent && nodeType(parent) === 1) {
    const box = boxOf(parent);
    if (box.height < 200 && box.height > 0) return box;
  }
  ruler.selectNodeContents(node);
  const box = ruler.getBoundingClientRect();
  ruler.selectNodeContents(document);
  ruler.collapse(true);
  return box;
}

/** Pixels from the top of the top viewport to the top of a document's viewport. */
function frameOffset(observation, entry) {
  let top = 0;
  for (let holder = entry.holder; holder; ) {
    const box = boxOf(holder);
    top += box.top + clientTop(holder);
    const page = ownerDocument(holder);
    holder = observation.documents.find((other) => other.holder && documentOf(other.holder) === page)?.holder ?? null;
  }
  return top;
}
