"""Provider errors: recognises an exception of any SDK and turns it into one sentence with the remedy.

`toolcall_nb.sources.provider_errors.translation.as_model_error` is the entry point.
"""
