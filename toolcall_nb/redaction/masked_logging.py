"""The loggers of this package: what they emit has no secrets in it.

Only what is logged here is changed, before any handler gets it; loggers of others are left alone.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable

__all__ = ["logger"]


def logger(name: str) -> logging.Logger:
    """The logger ``toolcall_nb.…`` of this name, which masks what it emits: the message, its arguments, the traceback.

    A record without secrets is emitted as it is. From one with secrets in its traceback the exception itself is taken
    away, since handlers write it out by themselves; its text stays.
    """
    found = logging.getLogger(name)
    if _masking not in found.filters:
        found.addFilter(_masking)
    return found


class _Masking(logging.Filter):
    """Safe in any thread; a record that cannot be written out is left to the handlers, as it would be."""

    def filter(self, record: logging.LogRecord) -> bool:
        from toolcall_nb.redaction import Masker
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
            told = "".join(traceback.format_exception(*record.exc_info)).rstrip("\n")
            if (masked := mask(told)) is not told:
                record.exc_info, record.exc_text = None, masked
        if record.stack_info:
            record.stack_info = mask(record.stack_info)


_masking = _Masking()
