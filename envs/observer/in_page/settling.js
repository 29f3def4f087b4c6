// Waits until a page is quiet, or until it reacts late; whether the focused field may show suggestions.

const OFFERS = '[role=combobox], [role=searchbox], [type=search], [aria-autocomplete]:not([aria-autocomplete=none]), ' +
  '[aria-haspopup]:not([aria-haspopup=false]), [autocomplete=off]';
const RECHECK = 40; // ms between two checks of a page that says that it is at work

/**
 * Resolves after `idle` ms without any change, `quiet` ms after the last change, or `most` ms in total; not while the page
 * says that it is at work. Returns what changed since the mark, and the signs of work that were left.
 */
const untilQuiet = (idle, quiet, most, ignored, byPointer) => new Promise((done) => {
  const begun = performance.now();
  const end = () => {
    changeListeners.delete(changed);
    clearTimeout(cap);
    clearTimeout(timer);
    unmarkLater();
    done({ change: changeSinceMark(byPointer), answered: isAnswered(), work: atWork(performance.now() - begun, ignored) });
  };
  const check = () => {
    if (atWork(performance.now() - begun, ignored).length) timer = setTimeout(check, RECHECK);
    else end();
  };
  const changed = (beyondStyle) => {
    if (!beyondStyle) return; // an animation
    clearTimeout(timer);
    timer = setTimeout(check, quiet);
  };
  watchPage();
  clearTimeout(unmarking);
  const cap = setTimeout(end, most);
  let timer = setTimeout(check, idle);
  changeListeners.add(changed);
});

/** Resolves with true at the first change of the document, or with false after `most` ms. */
const firstChange = (most) => new Promise((done) => {
  const end = (changed) => {
    changeListeners.delete(listener);
    clearTimeout(timer);
    done(changed);
  };
  const listener = () => end(true);
  const timer = setTimeout(() => end(false), most);
  watchPage();
  changeListeners.add(listener);
});

/** Whether the focused field offers suggestions. */
function offersSuggestions() {
  const focused = deepFocus();
  return focused !== null && matches(focused, OFFERS);
}
