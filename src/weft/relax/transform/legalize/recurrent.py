"""Lowering of recurrent layers: one PrimFunc with the loop over the steps."""

from __future__ import annotations

from weft import topi
from weft.relax.transform.legalize.rule import table, with_attrs

TABLE = table(
    {
        "nn.lstm": with_attrs(topi.nn.lstm, "reverse", "weight_layout"),
        "nn.gru": with_attrs(topi.nn.gru, "reverse"),
        "nn.rnn": with_attrs(topi.nn.rnn, "activation", "reverse"),
    }
)
