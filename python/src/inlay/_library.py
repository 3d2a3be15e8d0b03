"""The C API, loaded, and how its calls end."""
from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from . import errors
from ._cdef import ffi

# Structs may grow; functions that this package calls are there from this version on.
INTERFACE_VERSION = 6

# $INLAY_LIBRARY: another library than the wheel's. It stays loaded to the end, when Python drops
# what is left in any order and handles are still freed by it.
lib: Any = ffi.dlopen(os.environ.get("INLAY_LIBRARY")
                      or str(Path(__file__).parent / "libs/libinlay.so"),
                      ffi.RTLD_NOW | ffi.RTLD_LOCAL | ffi.RTLD_NODELETE)
if lib.inlay_interface_version() < INTERFACE_VERSION:
    raise ImportError(f"the C API has version {lib.inlay_interface_version()}, not "
                      f"{INTERFACE_VERSION}")

_ERRORS: dict[int, type[errors.InlayError]] = {
    lib.INLAY_INVALID_ARGUMENT: errors.InvalidArgumentError,
    lib.INLAY_NOT_FOUND: errors.NotFoundError,
    lib.INLAY_OUT_OF_RANGE: errors.OutOfRangeError,
    lib.INLAY_RESOURCE_EXHAUSTED: errors.OutOfMemoryError,
    lib.INLAY_DATA_LOSS: errors.DataLossError,
    lib.INLAY_CANCELLED: errors.CancelledError,
    lib.INLAY_FAILED_PRECONDITION: errors.FailedPreconditionError,
}


def error_type(status: int) -> type[errors.InlayError]:
    return _ERRORS.get(status, errors.InlayError)


def last_sentence() -> str:
    sentence: bytes = ffi.string(lib.inlay_last_error())
    return sentence.decode("utf-8", "replace")


class _Thread(threading.local):
    """What a thread's long calls ask, about every 20 milliseconds: a pass that takes less never
    comes back to Python before its end."""

    def __init__(self) -> None:  # in each thread, when it makes its first call
        self.stop: Callable[[], bool] | None = None
        self.raised: BaseException | None = None
        self.inside = False  # a call that may take long
        self.main = threading.current_thread() is threading.main_thread()
        lib.inlay_set_poll(_poll, ffi.NULL)


def _keep(_kind: object, error: BaseException, _traceback: object) -> int:
    thread.raised = error
    return 1


@ffi.callback("int(void *)", error=1, onerror=_keep)  # type: ignore[misc]
def _poll(_user: object) -> int:
    # In the main thread Python runs handlers of signals here: Ctrl-C raises KeyboardInterrupt.
    return int((_ending and not thread.main)
               or (thread.stop is not None and thread.stop()))


thread = _Thread()

# Python ends daemon threads where they come back to it once it ends itself, and the library's calls
# cannot end like that: so they end before.
_calls = threading.Condition()
_inside = 0  # threads in calls that may take long, the main thread left out
_ending = False


@atexit.register
def _end_calls() -> None:
    global _ending
    with _calls:
        _ending = True
        _calls.wait_for(lambda: _inside == 0, timeout=10)


def _enter() -> None:
    global _inside
    thread.inside = True
    with _calls:
        if not _ending:
            _inside += 1
            return
    threading.Event().wait()  # a daemon thread, whose time is over


def _leave() -> None:
    global _inside
    thread.inside = False
    with _calls:
        _inside -= 1
        if not _ending:
            return
        _calls.notify()
    threading.Event().wait()


def _after_fork() -> None:
    """The forked process has the thread that forked alone, which is its main thread. Others may
    have had the lock."""
    global _calls, _inside
    _calls = threading.Condition()
    _inside = 0
    thread.main = True
    thread.inside = False


os.register_at_fork(after_in_child=_after_fork)


@contextmanager
def cancel_when(stop: Callable[[], bool]) -> Iterator[None]:
    """Within it, long calls of this thread ask `stop` about every 20 milliseconds, and end with
    CancelledError when it returns true or with what it raises; they have changed nothing then. So
    that one thread can end the calls of another: `with inlay.cancel_when(event.is_set): ...`.

    `stop` cannot compute with the model of the call that asks it (FailedPreconditionError), and
    must not wait for a thread that does."""
    outer = thread.stop
    thread.stop = lambda: stop() or (outer is not None and outer())
    try:
        yield
    finally:
        thread.stop = outer


def check(status: int) -> None:
    """Raises what the status of a call says, or what has interrupted the call."""
    if thread.inside:
        _leave()
    if status == 0:
        return
    raised, thread.raised = thread.raised, None
    if raised is not None:
        raise raised
    raise error_type(status)(last_sentence())


def ready() -> None:
    """To be called before a call that may take long, whose status goes to check()."""
    thread.raised = None
    if not thread.main and not thread.inside:
        _enter()


def path_of(path: str | os.PathLike[str]) -> bytes:
    """A path for C, which would end it at a NUL without a word."""
    name = os.fsencode(path)
    if b"\0" in name:
        raise ValueError(f"the path {path!r} has a null byte")
    return name


def fill(make: Callable[[int], Any], call: Callable[[Any, int, Any], Any],
         capacity: int) -> tuple[Any, int]:
    """A buffer that `make(capacity)` makes, and how much `call(buffer, capacity, count)` has
    written there: at first with this capacity, then with one that is enough."""
    count = ffi.new("size_t *")
    while True:
        buffer = make(capacity)
        status = call(buffer, capacity, count)
        if status != lib.INLAY_OUT_OF_RANGE or count[0] < capacity:
            check(status)
            return buffer, int(count[0])
        capacity = count[0] + 1  # a text's NUL


def text_of(call: Callable[[Any, int, Any], int], guess: int = 256) -> bytes:
    """The text that `call(buffer, capacity, size)` writes, whatever its length."""
    buffer, size = fill(lambda capacity: ffi.new("char[]", capacity), call, guess)
    return bytes(ffi.buffer(buffer, size))


def made(kind: str, call: Callable[[Any], None], free: Any) -> Any:
    """The handle that `call(out)` makes, which `free` frees once nobody holds it."""
    out = ffi.new(kind)
    try:
        call(out)
    except BaseException:
        # Handlers of signals may also raise just after a call that has succeeded.
        free(out[0])
        raise
    return ffi.gc(out[0], free)
