// Detects changes of a page, and whether the focused field may show suggestions.

const OFFERS = '[role=combobox], [role=searchbox], [type=search], [aria-autocomplete]:not([aria-autocomplete=none]), ' +
  '[aria-haspopup]:not([aria-haspopup=false]), [autocomplete=off]';
const EVERYTHING = { subtree: true, childList: true, characterData: true, attributes: true };

/** Resolves after `idle` ms without any change, `quiet` ms after the last change, or `most` ms in total. */
const untilQuiet = (idle, quiet, most) => new Promise((done) => {
  const end = () => {
    observer.disconnect();
    clearTimeout(cap);
    clearTimeout(timer);
    done();
  };
  const counts = (record) => record.type !== 'attributes' || record.attributeName !== 'style';
  const observer = new MutationObserver((records) => {
    if (!records.some(counts)) return;
    clearTimeout(timer);
    timer = setTimeout(end, quiet);
  });
  const cap = setTimeout(end, most);
  let timer = setTimeout(end, idle);
  observer.observe(document, EVERYTHING);
});

/** Resolves with true at the first change of the document, or with false after `most` ms. */
const firstChange = (most) => new Promise((done) => {
  const end = (changed) => {
    observer.disconnect();
    clearTimeout(timer);
    done(changed);
  };
  const observer = new MutationObserver(() => end(true));
  const timer = setTimeout(() => end(false), most);
  observer.observe(document, EVERYTHING);
});

/** The same if the focused field offers suggestions; else resolves with false at once. */
function firstSuggestion(most) {
  let focused = activeOf(document);
  for (let root = focused && openRoot(focused); root && activeOf(root); root = openRoot(focused)) focused = activeOf(root);
  return focused && matches(focused, OFFERS) ? firstChange(most) : false;
}
