"""The primitives of schedules by family; ``weft.tir.schedule.schedule`` is the table of them."""
