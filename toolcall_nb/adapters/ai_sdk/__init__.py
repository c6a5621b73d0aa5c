"""The AI SDK's own forms: UI message chunks and UI messages."""
