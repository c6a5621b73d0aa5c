"""The event vocabulary, under its stable name; defined in `toolcall_nb.core.events`."""

from toolcall_nb.core.events import *  # noqa: F403
from toolcall_nb.core.events import __all__ as __all__
