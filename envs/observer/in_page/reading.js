// A complete document as text, for checks of the final page.

const WHOLE_CHARS = 4000000;

/** The visible text, then the document itself (attributes, values set by the server) without its code. */
function wholePage() {
  const [root, body] = [rootElement(document), bodyOf(document)];
  if (!root) return '';
  const copy = cloneOf(root, true);
  for (const code of queryAll(copy, 'script, style, template')) removeNode(code);
  return `${body ? innerText(body) : ''}\n${outerHtml(copy)}`.slice(0, WHOLE_CHARS).toWellFormed();
}

/** The complete document with its code. */
function pageSource() {
  const [root, kind] = [rootElement(document), doctypeOf(document)];
  const head = kind ? new XMLSerializer().serializeToString(kind) : '';
  return (head + (root ? outerHtml(root) : '')).slice(0, WHOLE_CHARS).toWellFormed();
}
