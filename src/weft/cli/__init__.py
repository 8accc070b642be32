"""The command line: ``weft demo``. A user of weft like any other, and so of its facades."""
