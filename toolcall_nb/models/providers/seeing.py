"""Says which models see pictures: `sees_pictures`. A model that is not known to see is sent text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

PICTURES = "pictures"
"""The setting by which the user says whether a model sees: True or False."""

_SEEING = re.compile(
    r"claude-(?:3|opus|sonnet|haiku)|gemini-|gpt-4o|gpt-4\.1|gpt-[5-9]|o[13](?!-mini|-preview)(?:-|$)|o4-mini"
    r"|pixtral|llava|(?:qwen|llama|internvl)[\d.]{0,9}-?(?:vl|vision)\b"
)
"""Model names, from their beginning, whose providers document pictures as input."""

_MAKER = re.compile(r"^(?:models/|[\w-]+[/.](?=[a-z]))+")
"""What hubs and clouds write before a model's name: ``anthropic/``, ``anthropic.``, ``models/``."""


def sees_pictures(name: str, profile: Mapping[str, Any], settings: Mapping[str, Any]) -> bool:
    """Whether a model may be sent pictures: as the setting says, not against pydantic-ai's profile, else by its name.

    The profile alone does not tell: it allows pictures for every model of which nothing is known.
    """
    said = settings.get(PICTURES)
    if isinstance(said, bool):
        return said
    return profile.get("supports_image_input") is not False and bool(_SEEING.match(_MAKER.sub("", name.lower())))
