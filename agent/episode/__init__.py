"""Runs an episode: the LangGraph graph, its nodes and state, the policy and its prompts, approval."""
