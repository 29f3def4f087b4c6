"""The text of prompts: outside text fenced as data, invisible characters, chat templates as tokens."""
