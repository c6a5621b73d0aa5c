"""Provider errors: recognises an exception of any SDK and turns it into one sentence with the remedy."""
