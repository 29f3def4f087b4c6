"""Builds the embedded model's tokenizer: every text round-trips, and a word has the same tokens at any position.

Copying a word from the goal onto the page, or from the page into the answer, is most of what the small model does.
Ordinary byte-level BPE makes that hard: `bob`, ` bob` and `"bob` are different tokens. Here

- words (runs of ASCII letters and digits) are split from everything else, so their tokens never depend on neighbours;
- a single blank between two words costs no token: it is implied, and put back when decoding;
- the frequent scaffolding of prompts and answers (`"  [`, `] button "`, `do(action="`, …) is one token each;
- everything else is single bytes, so nothing is out of vocabulary.

Pieces that continue a word carry the prefix `ÿ`: in the byte alphabet that is byte 0xFF, which UTF-8 never holds.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

PAD, BEGIN, ANSWER, END = "<|pad|>", "<|begin|>", "<|answer|>", "<|end|>"
"""Begin of a prompt, begin and end of an answer. Only the chat template writes them."""

CONTINUES = "ÿ"
ROLES = [
    "button",
    "link",
    "textbox",
    "textarea",
    "checkbox",
    "radio",
    "combobox",
    "listbox",
    "option",
    "tab",
    "menu",
    "menuitem",
    "slider",
    "spinbutton",
    "searchbox",
    "generic",
    "clickable",
    "image",
    "img",
    "cell",
    "row",
    "listitem",
    "heading",
    "treeitem",
    "switch",
    "dialog",
    "text",
    "group",
    "element",
]
STATES = ["checked", "disabled", "expanded", "collapsed", "selected", "focused", "readonly", "required", "password"]
SCAFFOLDING = (
    'do(action="',
    '", argument="',
    '", element="',
    '")',
    'exit(message="',
    "Goal: ",
    "\nNext: ",
    "\nDone: ",
    "\nPage:\n",
    "\n[",
    '"\n[',
    '"  [',
    "  [",
    '" | [',
    " | [",
    " | ",
    '" = "',
    '" options: "',
    '" "',
    '", "',
    '"\n',
    '".',
    ' "',
    '" ',
    ". ",
    ", ",
    ": ",
    ".\n",
    "\n# ",
    "\n--- ",
    '"\n--- ',
    '"  (',
    '"\nDone: ',
)

CHAT_TEMPLATE = (
    "{{ '" + BEGIN + "' }}{% for message in messages %}"
    "{% if message.role == 'assistant' %}{{ '" + ANSWER + "' + message.content + '" + END + "' }}"
    "{% else %}{{ message.content }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ '" + ANSWER + "' }}{% endif %}"
)

_WORD = "[A-Za-z0-9]"


def scaffolding() -> tuple[str, ...]:
    """Every multi-character token that is not a word, longest first."""
    roles = [f'] {role} "' for role in ROLES]
    return tuple(sorted({*SCAFFOLDING, *roles}, key=lambda text: (-len(text), text)))


def build_tokenizer(texts: Iterable[str], size: int = 2_048) -> PreTrainedTokenizerFast:
    """Trains word pieces on *texts*; equal texts in equal order give the same tokenizer."""
    core = Tokenizer(models.BPE(continuing_subword_prefix=CONTINUES))
    _set_pipeline(core)
    specials = [PAD, BEGIN, ANSWER, END]
    trainer = trainers.BpeTrainer(
        vocab_size=size - len(scaffolding()) - 62,
        special_tokens=specials,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        continuing_subword_prefix=CONTINUES,
        show_progress=False,
    )
    core.train_from_iterator((_words_only(text) for text in texts), trainer)
    return _wrapped(_with_scaffolding(core), specials)


def with_words(
    tokenizer: PreTrainedTokenizerFast, texts: Iterable[str], limit: int, copied: Iterable[str] = ()
) -> PreTrainedTokenizerFast:
    """Adds up to *limit* words of *texts* to *tokenizer* as single tokens, those that save the most tokens.

    Every token keeps its number, and a text without these words its tokens. Words of *copied* stay as they are: copying
    is known of their pieces, and would have to be learned of every new token.
    """
    core = tokenizer.backend_tokenizer
    state = json.loads(core.to_str())
    vocab: dict[str, int] = state["model"]["vocab"]
    known = {*vocab, *_words(copied)}
    counts = Counter(word for word in _words(texts) if word not in known)
    saved = {word: (len(core.encode(word, add_special_tokens=False)) - 1) * n for word, n in counts.items()}
    for word in sorted(saved, key=lambda word: (-saved[word], word))[:limit]:
        vocab[word] = len(vocab)
    return _wrapped(Tokenizer.from_str(json.dumps(state)), [PAD, BEGIN, ANSWER, END])


def _words(texts: Iterable[str]) -> Iterator[str]:
    return (word for text in texts for word in re.findall(f"{_WORD}+", text))


def _words_only(text: str) -> str:
    """Merges are learned inside words only; the rest has fixed tokens."""
    return "\n".join(_words([text]))


def _set_pipeline(core: Tokenizer) -> None:
    mapped = "|".join(re.escape(text.replace(" ", "Ġ").replace("\n", "Ċ")) for text in scaffolding())
    core.normalizer = normalizers.ByteLevel()
    core.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(f"(?<={_WORD})Ġ(?={_WORD})"), "removed"),
            pre_tokenizers.Split(Regex(f"{mapped}|{_WORD}+|."), "isolated"),
        ]
    )
    core.decoder = decoders.Sequence(
        [
            decoders.WordPiece(prefix=CONTINUES, cleanup=False),
            decoders.Fuse(),
            decoders.Replace(Regex(f"(?<!{_WORD}) | (?!{_WORD})"), ""),
            decoders.Replace(" ", "Ġ"),
            decoders.ByteLevel(),
        ]
    )


def _with_scaffolding(core: Tokenizer) -> Tokenizer:
    """Adds whole-piece entries for scaffolding and for every character inside a word, which need no merges."""
    state = json.loads(core.to_str())
    vocab: dict[str, int] = state["model"]["vocab"]
    pieces = [text.replace(" ", "Ġ").replace("\n", "Ċ") for text in scaffolding()]
    letters = [CONTINUES + c for c in "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"]
    for piece in [*letters, *pieces]:
        vocab.setdefault(piece, len(vocab))
    state["model"]["ignore_merges"] = True
    return Tokenizer.from_str(json.dumps(state))


def _wrapped(core: Tokenizer, specials: list[str]) -> PreTrainedTokenizerFast:
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core,
        bos_token=BEGIN,
        eos_token=END,
        pad_token=PAD,
        additional_special_tokens=[ANSWER],
        clean_up_tokenization_spaces=False,
        padding_side="left",
        model_max_length=1_024,
    )
    tokenizer.chat_template = CHAT_TEMPLATE
    assert set(specials) <= set(tokenizer.all_special_tokens)
    return tokenizer
