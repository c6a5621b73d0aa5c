"""Outputs with a widget that cannot be shown, for the tests in a browser."""

from __future__ import annotations

WIDGET = "application/vnd.jupyter.widget-view+json"


BROKEN = ("model not found", "Error displaying widget", "Loading widget", "Error creating widget")
