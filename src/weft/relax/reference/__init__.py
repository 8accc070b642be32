"""What the graph means: the numpy reference of every operator, and the Relax interpreter.

``REFERENCE`` defines the operators (design.md 3.3, 3.14), operator -> function; ``run`` executes a
function of a module with it. ``PassContext(verify=True)``, the fuzzer and the numerical tests
compare passes and native code with them. ``register_reference`` adds an operator of a user.
"""

from weft.relax.reference.interpreter import run
from weft.relax.reference.operators import NO_REFERENCE, REFERENCE, register_reference

__all__ = ["NO_REFERENCE", "REFERENCE", "register_reference", "run"]
