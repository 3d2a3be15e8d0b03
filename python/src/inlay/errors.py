"""What calls raise: an exception for each status of the C API, with its sentence."""
from __future__ import annotations


class InlayError(Exception):
    """Unless a method says otherwise, nothing that it was called with has changed."""


class InvalidArgumentError(InlayError, ValueError):
    """An argument, or the content of a file."""


class NotFoundError(InlayError, FileNotFoundError):
    """No such file."""


class OutOfRangeError(InlayError, ValueError):
    """Too long, or too far back."""


class OutOfMemoryError(InlayError, MemoryError):
    """Not enough memory."""


class DataLossError(InlayError):
    """A damaged file, or numbers that are not finite."""


class CancelledError(InlayError):
    """Stopped before there was a result."""


class FailedPreconditionError(InlayError, RuntimeError):
    """Refused in the present state."""


class BatchError(InlayError):
    """Some steps of a batch failed alone; the others have advanced.

    `failed` has the numbers of those that did, each with its kind of error; the message has their
    sentences.
    """

    def __init__(self, sentence: str, failed: dict[int, type[InlayError]]) -> None:
        super().__init__(sentence, failed)  # both are needed to copy it to another process
        self.failed = failed

    def __str__(self) -> str:
        return str(self.args[0])
