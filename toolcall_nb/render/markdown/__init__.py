"""Model text as HTML: the Markdown parser and its rules, and the same HTML built step by step while text streams in."""
