"""A long use, compressed: an hour's worth of streams in a real kernel and a real page, and what stays of it."""
