"""The loggers of this package, which mask secrets: `logger`.

Records are changed before a handler gets them. Loggers of other packages are not touched.
"""

from __future__ import annotations

import logging
import traceback


def logger(name: str) -> logging.Logger:
    """Returns the logger of this name, which masks the message, its arguments and the traceback.

    A record without secrets is not changed. A record with secrets in its traceback loses the exception, which handlers
    would write out themselves, and keeps its masked text.
    """
    masking_logger = logging.getLogger(name)
    if _masking not in masking_logger.filters:
        masking_logger.addFilter(_masking)
    return masking_logger


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
        if record.exc_info and record.exc_info[0] is not None:
            text = "".join(traceback.format_exception(*record.exc_info)).rstrip("\n")
            if (masked := masker.text(text)) is not text:
                record.exc_info, record.exc_text = None, masked
        if record.stack_info:
            record.stack_info = masker.text(record.stack_info)
        return True


_masking = _Masking()
