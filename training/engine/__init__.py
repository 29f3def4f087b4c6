"""Trains one model per stage on packed rows: supervised fine-tuning, the two critics, the actor.

Each trainer is a short subclass of a library's trainer, which provides precision, checkpointing, sharding, adapters and
resume. Training targets are computed before a stage and stored in columns beside its rows.
"""
