// Words by which classes, attributes and icons tell a state, and words that only look so.

const PARTICIPLES = new Set('liked starred favorited favourited bookmarked pinned followed subscribed muted'.split(' '));
/** State words of classes by what they say. `choice`, `fold` and `bar` are families: one cue of each at most. */
const CLASS_WORDS = {
  __proto__: null,
  ...wordsOf('choice', { selected: 'selected active current chosen activated', checked: 'checked ticked', unchecked: 'unchecked unticked',
    pressed: 'pressed depressed', on: 'on toggled', off: 'off' }),
  ...wordsOf('choice', Object.fromEntries([...PARTICIPLES].map((word) => [word, word]))),
  ...wordsOf('fold', { expanded: 'open opened expanded', collapsed: 'collapsed closed', }),
  ...wordsOf('bar', { disabled: 'disabled' }),
};
function wordsOf(family, cues) {
  return Object.fromEntries(Object.entries(cues).flatMap(([cue, words]) => words.split(' ').map((word) => [word, { family, cue, word }])));
}
/** Icon classes that come in pairs. */
const ICONS = [
  [/(?:^|-)toggle-on$/, 'on'],
  [/(?:^|-)toggle-off$/, 'off'],
  [/(?:^|-)(?:square-check|check-square(?:-[of]|-fill)?|checkbox-(?:checked|marked)|radio-?button-(?:checked|on)|(?:circle-dot|dot-circle)(?:-o)?)$/, 'checked'],
  [/(?:^|-)(?:square-o|checkbox-(?:unchecked|blank(?:-outline)?)|radio-?button-(?:unchecked|off|blank))$/, 'unchecked'],
];
const LIGATURES = { __proto__: null, check_box: 'checked', check_box_outline_blank: 'unchecked', radio_button_checked: 'checked',
  radio_button_unchecked: 'unchecked', toggle_on: 'on', toggle_off: 'off' };
const CARET = /(?:^|-)(?:caret|chevron|angle|arrow|arrowhead|triangle)(?:-(?:fill|small|circle|drop))*-(right|left|down|up)(?:-(?:fill|small))?$/;
const LIGATURE_CARETS = { __proto__: null, expand_more: 'down', expand_less: 'up', chevron_right: 'right', keyboard_arrow_right: 'right',
  keyboard_arrow_down: 'down', keyboard_arrow_up: 'up', arrow_right: 'right', arrow_drop_down: 'down', arrow_drop_up: 'up' };
const ATTRIBUTE_CUES = { __proto__: null, checked: 'checked', selected: 'selected', active: 'selected', pressed: 'pressed', current: 'current', on: 'on',
  toggled: 'on', open: 'expanded', expanded: 'expanded', disabled: 'disabled' };
const STATE_VALUES = { __proto__: null, on: 'on', off: 'off', checked: 'checked', unchecked: 'unchecked', active: 'selected', selected: 'selected', open: 'expanded',
  closed: 'collapsed', expanded: 'expanded', collapsed: 'collapsed', pressed: 'pressed', disabled: 'disabled' };
const FAMILY = (cue) => (cue === 'expanded' || cue === 'collapsed' ? 'fold' : cue === 'disabled' ? 'bar' : 'choice');

/** Class words of things other than a state: a role among siblings, a kind of data, or the pointer and the focus. */
const OTHER_WORDS = new Set(('primary secondary tertiary danger destructive warning error invalid success info default outline outlined ghost cta ' +
  'submit link brand logo sale new featured premium pro promo recommended popular first last odd even alt stripe striped sorted sorting sort asc desc ' +
  'urgent late cancelled canceled failed paid shipped delivered archived draft published critical high low priority vip expired ' +
  'blocked approved rejected unavailable today weekend holiday unread external loading required badge status overdue pending hidden large small lg sm xl xs').split(' '));
/** Words of classes that come and go without a change of state. */
const PASSING_WORDS = new Set(('hover hovered over hot focus focused focusvisible visible within ripple ripples touched untouched dirty pristine valid ' +
  'loading loaded lazyloaded animated animating animation transition entering entered leaving leave enter fade').split(' '));
const SWITCH_WORDS = new Set('is toggle switch state power turned button btn lamp light'.split(' '));
const OPENING_WORDS = new Set('is state dropdown submenu select menu accordion tree node panel collapse item'.split(' '));
/** Words before a state word that turn it into something else: no state, a condition, or a colour (`fill-current`). */
const TURNING_WORDS = new Set(('not non un no never de if when on hide show only text bg border fill stroke ring outline decoration accent caret divide ' +
  'from to via').split(' '));
/** Names of buttons that act: one of them is often drawn stronger, which is no state. */
const ACTS = new RegExp('^(?:save|send|submit|ok|okay|apply|confirm|continue|next|create|add|new|publish|update|search|go|log ?in|log ?out|sign ?(?:in|up|out)|' +
  'delete|remove|cancel|close|buy|check ?out|order|pay|get|try|start|donate|subscribe|contact|register|join|download|upload|edit|reset|clear|yes|no|back)\\b', 'i');

const NO_TOKENS = Object.freeze([]);
function tokensOf(element) {
  const classes = attr(element, 'class');
  return classes ? classes.split(/\s+/, 40).filter(Boolean) : NO_TOKENS;
}
const meanings = new Map(); // class token → its words, see meaningOf

/** The words of a class, and what the last of them may say: a state, an icon, the direction of a caret. */
function meaningOf(token) {
  let known = meanings.get(token);
  if (known) return known;
  if (meanings.size > 5000) meanings.clear();
  const segments = divided(token);
  const text = segments.join('-');
  const icon = ICONS.find(([pattern]) => pattern.test(text));
  const caret = CARET.exec(text);
  known = { segments, state: CLASS_WORDS[segments[segments.length - 1]], drawn: icon ? icon[1] : '', caret: caret ? caret[1] : '' };
  meanings.set(token, known);
  return known;
}

const segmentsOf = (token) => meaningOf(token).segments;

/** `Button_active__x3f` → button, active. Classes with a variant (`hover:…`) have no words. */
function divided(token) {
  let body = /[:[\]/!@]/.test(token) || token.length > 80 ? '' : token;
  body = body.replace(/^([A-Za-z][A-Za-z0-9]*_[A-Za-z0-9_-]+)__[A-Za-z0-9+-]{3,10}$/, '$1').replace(/(?<=[A-Za-z])_{1,2}(?=[A-Za-z0-9]*\d)[A-Za-z0-9]{3,10}$/, '');
  return body.replace(/([a-z0-9])([A-Z])/g, '$1-$2').toLowerCase().split(/[-_]+/).filter(Boolean);
}

/** A word that is part of the control's name tells its topic: `delete-selected` of "Delete selected". */
function isState(one, token, segments, { family, cue, word }) {
  const alone = segments.length === 1;
  const named = one.name.includes(word);
  if (!alone && named && !/(?:^|[-_])(?:is|state)[-_]/i.test(token)) return false;
  if (family === 'fold' && named) return false;
  if (alone) return true;
  const before = segments[segments.length - 2];
  if (TURNING_WORDS.has(before)) return false;
  const modifier = /--|__|[a-z0-9][A-Z]/.test(token) || before === 'is';
  if (cue === 'on' || cue === 'off') return modifier || SWITCH_WORDS.has(before) || /switch|toggle/.test(token);
  if (cue === word && family === 'choice' && PARTICIPLES.has(word)) return modifier; // not `text-muted`
  return word !== 'open' || modifier || OPENING_WORDS.has(before);
}
