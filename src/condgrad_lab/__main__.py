"""`python -m condgrad_lab` is `condgrad`."""

import sys

from condgrad_lab.cli import main

if __name__ == "__main__":  # not in the workers, which import this module under another name
    sys.exit(main())
