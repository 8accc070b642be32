"""``weft.error``: the errors under the names of TVM 0.20 (the tree is ``weft.support.errors``)."""

from __future__ import annotations

from weft.support.errors import (
    CodegenError,
    DiagnosticError,
    InternalError,
    IRAttributeError,
    IRIndexError,
    IRKeyError,
    IRTypeError,
    IRValueError,
    LegalizeError,
    PassError,
    RuntimeFault,
    ScheduleError,
    TVMError,
    UnsupportedError,
    VerifyError,
)

__all__ = [
    "CodegenError", "DiagnosticError", "IRAttributeError", "IRIndexError", "IRKeyError",
    "IRTypeError", "IRValueError", "InternalError", "LegalizeError", "OpAttributeInvalid",
    "OpAttributeRequired", "OpAttributeUnImplemented", "OpError", "OpNotImplemented", "PassError",
    "RPCError", "RPCSessionTimeoutError", "RuntimeFault", "ScheduleError", "TVMError",
    "UnsupportedError", "VerifyError",
]  # fmt: skip


class RPCError(TVMError):
    """A call of a remote machine failed."""


class RPCSessionTimeoutError(RPCError, TimeoutError):
    """A session on a remote machine took longer than it was given."""


class OpError(TVMError):
    """An operator cannot be imported or built."""


class OpNotImplemented(OpError, NotImplementedError):
    """An importer does not know an operator."""


class OpAttributeRequired(OpError, AttributeError):
    """An operator lacks an attribute that it needs."""


class OpAttributeInvalid(OpError, AttributeError):
    """An attribute of an operator has a value that is not allowed."""


class OpAttributeUnImplemented(OpError, NotImplementedError):
    """An attribute of an operator is not supported."""
