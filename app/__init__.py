"""The page: what is on it, what each event does, and who is in which session."""

from __future__ import annotations


def main() -> None:
    """Serve the page until interrupted."""
    from app.page import serve

    serve()
