"""The parser of the command line, which says what a misspelled word may have meant: `CommandParser`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from toolcall_nb.core.similar_names import did_you_mean


class CommandParser(argparse.ArgumentParser):
    """A parser whose errors say which name was probably meant."""

    def parse_known_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> tuple[Any, list[str]]:  # type: ignore[override]
        """Parses the arguments. An option that is not known is an error of the command that it stands behind."""
        options, others = super().parse_known_args(args, namespace)
        if others:
            name = others[0].partition("=")[0]
            self.error(f"there is no option {name!r:.100}.{did_you_mean(name, self._option_string_actions)}")
        return options, others

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            names = [*map(str, action.choices)]
            hint = did_you_mean(f"{value}", names)
            raise argparse.ArgumentError(action, f"there is no {value!r:.100}.{hint} There are: {', '.join(names)}.")
