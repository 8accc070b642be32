"""``weft.quantize``: layers that multiply integers, by numbers measured on samples."""
