"""The meaning of operators in numpy: functions that the rows name (``@operator(numpy=...)``).

They take the values of the call's arguments, then the attributes by name (see ``rule``).
"""
