"""The sites suite: real web applications on loopback with tasks, golden states and exact checkers."""
