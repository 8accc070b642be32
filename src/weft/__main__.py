"""``python -m weft``: the command line, where the ``weft`` command is not on the path."""

import sys

from weft.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
