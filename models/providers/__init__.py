"""Chat models by provider: OpenAI's protocol, Gemini, checkpoints in this process, scripted answers."""
