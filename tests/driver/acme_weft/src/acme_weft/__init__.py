"""A package outside of weft that adds an operator, a converter, a pass, a rule and a target."""
