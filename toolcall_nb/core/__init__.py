"""The core, pure: events, the transcript that they build, and the text and JSON that both rest on."""
