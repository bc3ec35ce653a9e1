"""``python -m handrail`` is the command line."""

import sys

from handrail.adapters.cli import main

if __name__ == "__main__":
    sys.exit(main())
