"""The browser: Chromium, sessions, tabs, the action executor, dialogs, downloads, and when a page is settled."""
