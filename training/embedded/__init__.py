"""Trains the embedded model from scratch: synthetic pages, demonstrations, tokenizer, network, training.

`python -m training.embedded` makes it, `python -m training.embedded.evaluate` measures it; only the names of its
tasks are used elsewhere. From what is seen to what is written: `synthetic`, `lookalikes*` (made-up pages), `demos`
and `lessons` (real ones), `augment` and `mixture` (what is drawn when), `tokenizer`, `circuit` (weights that copy),
`train`, `export`.
"""
