"""``python -m toolcall_nb`` is ``toolcall-nb``."""

from __future__ import annotations

import sys

from toolcall_nb.cli import main

if __name__ == "__main__":
    sys.exit(main())
