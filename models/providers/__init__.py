"""Model providers, one file each (`openai.py`, `gemini.py`, …): the form of the spec, and how a model is made of it.
The chat models themselves, which import heavy packages, are in the files beside them (`openai_chat.py`,
`gemini_chat.py`).
"""
