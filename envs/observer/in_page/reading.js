// A whole document as text, for checks of what a page holds in the end.

const WHOLE_CHARS = 4000000;

/** What a person sees, then the document itself (attributes, values that were set by the server) without its code. */
function wholePage() {
  const [root, body] = [rootElement(document), bodyOf(document)];
  if (!root) return '';
  const copy = cloneOf(root, true);
  for (const code of queryAll(copy, 'script, style, template')) removeNode(code);
  return `${body ? innerText(body) : ''}\n${outerHtml(copy)}`.slice(0, WHOLE_CHARS).toWellFormed();
}

/** The whole document, code included. */
function pageSource() {
  const [root, kind] = [rootElement(document), doctypeOf(document)];
  const head = kind ? new XMLSerializer().serializeToString(kind) : '';
  return (head + (root ? outerHtml(root) : '')).slice(0, WHOLE_CHARS).toWellFormed();
}
