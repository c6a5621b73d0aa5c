"""Markdown as HTML: the flavor that model text is shown in, whole or as it streams."""
