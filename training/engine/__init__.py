"""Single-model stages over packed rows: the supervised start, the two critics, the actor.

Each is a short subclass of a library's trainer, so that precision, checkpointing, sharding, adapters and resume are
the library's. What a stage learns towards was computed before it began and lies in columns beside its rows.
"""
