"""The nodes of the graph, one file each. A node reads the state, uses the episode, and returns its changes."""
