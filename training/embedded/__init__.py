"""The model that ships, made from nothing: pages that are made up, real steps, a tokenizer, a network, its training.

`python -m training.embedded` makes it, `python -m training.embedded.evaluate` measures it; only the names of its
tasks are used elsewhere. From what is seen to what is written: `synthetic`, `lookalikes*` (made-up pages), `demos`
and `lessons` (real ones), `augment` and `mixture` (what is drawn when), `tokenizer`, `circuit` (weights that copy),
`train`, `export`.
"""
