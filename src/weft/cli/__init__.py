"""The command line: ``weft compile``, ``weft demo`` and the like. It uses weft as any user does,
through the facades.
"""
