"""``relax.ir``: rules about expressions and struct info; TVM's name for ``relax.ir.instrument``."""
