"""Mathematical functions."""
FUNCTIONS = {}
def call(em, name, expr):
    raise NotImplementedError
