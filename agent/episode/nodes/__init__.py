"""The nodes of the loop, one file each. A node reads the state, works with the episode, returns what changed."""
