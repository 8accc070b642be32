"""``weft.tune``: search for faster answers to the choices of default schedules, by measuring."""
