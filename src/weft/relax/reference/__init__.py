"""What the graph means: the Relax interpreter, which runs operators by their numpy references.

``run`` executes a function of a module. ``PassContext(verify=True)``, the fuzzer and the numerical
tests compare passes and native code with it. ``reference_of`` gives the numpy reference of an
operator's row (design.md 3.3, 3.14); ``register_reference`` adds that of a user's operator.
"""

from weft.relax.reference.interpreter import run
from weft.relax.reference.operators import reference_of, register_reference

__all__ = ["reference_of", "register_reference", "run"]
