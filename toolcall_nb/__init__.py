"""Tool calls of language models, live in a notebook cell and readable ever after."""
