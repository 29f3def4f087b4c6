"""Real web applications on loopback as task environments: applications, tasks, golden states, checkers."""
