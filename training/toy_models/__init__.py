"""Small models made from nothing: what RL on two CPU cores can begin from, once they have learned a little."""
