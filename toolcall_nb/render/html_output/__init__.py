"""Transcripts as HTML: cards as a tree of nodes, static pages, and patches for a live view."""
