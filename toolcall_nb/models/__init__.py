"""Models: where events come from.

`model` makes one from a name. `MockModel` needs no key and no network; `ReplayModel` and `replay` play a
transcript again; `EnvelopeModel` reads a service's envelopes; `with_faults` spoils any model's stream, for tests.
"""

from __future__ import annotations

from toolcall_nb.models import faults
from toolcall_nb.models.base import Model, model_name
from toolcall_nb.models.by_name import model, names
from toolcall_nb.models.envelope_model import EnvelopeModel
from toolcall_nb.models.faults import with_faults
from toolcall_nb.models.mock.model import MockModel
from toolcall_nb.models.pace import Pace, as_live, pieces
from toolcall_nb.models.replay import ReplayModel, replay

__all__ = [
    "EnvelopeModel",
    "MockModel",
    "Model",
    "Pace",
    "ReplayModel",
    "as_live",
    "faults",
    "model",
    "model_name",
    "names",
    "pieces",
    "replay",
    "with_faults",
]
