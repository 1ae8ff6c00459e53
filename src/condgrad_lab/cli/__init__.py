"""The command line: `condgrad list | run | render | check | report | show | data | env`."""

from condgrad_lab.cli._main import main

__all__ = ["main"]
