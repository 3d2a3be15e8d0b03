"""Language models whose sequences fork, rewind and batch without a changed bit.

    model = inlay.Model.load("model.gguf")
    sequence = model.sequence(model.tokenize("To be, or not"))
    other = sequence.fork()
    print(model.detokenize([sequence.logits.argmax()]))

Every pass releases Python's lock, and Ctrl-C ends a long one, which then has changed nothing.
"""
from ._cdef import ffi as _ffi
from ._library import cancel_when, lib as _lib
from ._arrays import Tokens
from .chat import Chat, Message
from .errors import (BatchError, CancelledError, DataLossError, FailedPreconditionError, InlayError,
                     InvalidArgumentError, NotFoundError, OutOfMemoryError, OutOfRangeError)
from .generation import Generation, generate_together
from .model import (Model, Perplexity, Step, configs, guard_mapped_files, pull, set_target)
from .options import Gbnf, JsonSchema, Options, Regex, StopReason
from .sequence import Sequence, shared_bytes

__version__: str = _ffi.string(_lib.inlay_version()).decode()

__all__ = ["BatchError", "CancelledError", "Chat", "DataLossError", "FailedPreconditionError",
           "Gbnf", "Generation", "InlayError", "InvalidArgumentError", "JsonSchema", "Message",
           "Model", "NotFoundError", "Options", "OutOfMemoryError", "OutOfRangeError", "Perplexity",
           "Regex", "Sequence", "Step", "StopReason", "Tokens", "cancel_when",
           "configs", "generate_together", "guard_mapped_files", "pull", "set_target",
           "shared_bytes"]
