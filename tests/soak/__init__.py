"""The soak test: an hour's worth of streams in a real kernel and page, to find what stays alive after them."""
