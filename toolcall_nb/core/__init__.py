"""The core: events, the transcript that they build, and the text and JSON that both are made of. It is pure."""
