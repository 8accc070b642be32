"""The Relax interpreter, which defines what a graph means: numpy references compute its operators.

``run`` executes a function of a module. ``PassContext(verify=True)``, the fuzzer and the numerical
tests compare passes and native code with it. ``reference_of`` returns the numpy reference in an
operator's row; ``register_reference`` adds one for a user's operator.
"""

from weft.relax.reference.interpreter import run
from weft.relax.reference.operators import reference_of, register_reference

__all__ = ["reference_of", "register_reference", "run"]
