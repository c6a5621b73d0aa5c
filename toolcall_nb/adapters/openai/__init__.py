"""OpenAI's two APIs, chat completions and responses, and the many that speak like them."""
