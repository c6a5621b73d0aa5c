"""The loggers of this package, which mask secrets: `logger`.

Records are changed before a handler gets them. Loggers of other packages are not touched.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable


def logger(name: str) -> logging.Logger:
    """Returns the logger of this name, which masks the message, its arguments and the traceback.

    A record without secrets is not changed. A record with secrets in its traceback loses the exception, which handlers
    would write out themselves, and keeps its masked text.
    """
    found = logging.getLogger(name)
    if _masking not in found.filters:
        found.addFilter(_masking)
    return found


class _Masking(logging.Filter):
    """Masks records, in any thread. A record that cannot be formatted is left to the handlers."""

    def filter(self, record: logging.LogRecord) -> bool:
        from toolcall_nb.redaction.masker import Masker
        from toolcall_nb.redaction.registered_secrets import known_secrets

        masker = Masker(known_secrets(), eager=True)
        try:
            message = record.getMessage()
        except Exception:  # wrong arguments: logging reports them, with the values
            message = f"{record.msg} (its arguments do not fit)"
            record.msg, record.args = message, ()
        if (masked := masker.text(message)) is not message:
            record.msg, record.args = masked, ()
        self._mask_traceback(record, masker.text)
        return True

    def _mask_traceback(self, record: logging.LogRecord, mask: Callable[[str], str]) -> None:
        if record.exc_info and record.exc_info[0] is not None:
            text = "".join(traceback.format_exception(*record.exc_info)).rstrip("\n")
            if (masked := mask(text)) is not text:
                record.exc_info, record.exc_text = None, masked
        if record.stack_info:
            record.stack_info = mask(record.stack_info)


_masking = _Masking()
