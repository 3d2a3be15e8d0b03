"""Two ways to go on from one prompt, and back again: main.py [MODEL [PROMPT]]

By libinlay.so and Python's own ctypes, as a pattern for languages that load a library; for Python itself there is the package inlay.
$INLAY_LIBRARY names the library where the system does not find it.
"""
import ctypes
import os
import sys
from ctypes import POINTER, byref, c_char_p, c_float, c_int, c_int32, c_size_t, c_uint64, c_void_p

TextCallback = ctypes.CFUNCTYPE(c_int, c_void_p, c_size_t, c_void_p)


class Options(ctypes.Structure):
    """The first fields of inlay_options. Its size tells the library that there are no more."""
    _fields_ = [("size", c_size_t), ("max_tokens", c_size_t), ("temperature", c_float), ("top_k", c_int), ("top_p", c_float),
                ("min_p", c_float), ("repeat_penalty", c_float), ("repeat_last_n", c_int), ("seed", c_uint64)]


library = ctypes.CDLL(os.environ.get("INLAY_LIBRARY", "libinlay.so.0"))
library.inlay_last_error.restype = c_char_p


def checked(status):
    if status != 0:
        raise RuntimeError(library.inlay_last_error().decode())


def declare(name, *argument_types):
    """A function that returns an inlay_status, and raises what is not INLAY_OK."""
    function = getattr(library, name)  # which library[name] would make anew each time
    function.argtypes, function.restype = argument_types, checked
    return function


load_model = declare("inlay_load_model", c_char_p, c_void_p, POINTER(c_void_p))
tokenize = declare("inlay_tokenize", c_void_p, c_char_p, c_size_t, POINTER(c_int32), c_size_t, POINTER(c_size_t))
create_cache = declare("inlay_create_cache", c_void_p, c_void_p, POINTER(c_void_p))
fork_cache = declare("inlay_fork_cache", c_void_p, POINTER(c_void_p))
append = declare("inlay_append", c_void_p, POINTER(c_int32), c_size_t, POINTER(c_float))
rewind_cache = declare("inlay_rewind_cache", c_void_p, c_size_t)
default_options = declare("inlay_default_options", c_void_p, POINTER(Options))
generate = declare("inlay_generate", c_void_p, POINTER(c_int32), c_size_t, POINTER(Options), TextCallback, c_void_p, c_void_p)
for name in "inlay_free_cache", "inlay_free_model":
    function = getattr(library, name)
    function.argtypes, function.restype = (c_void_p,), None


@TextCallback
def show(text, size, _):
    sys.stdout.buffer.write(ctypes.string_at(text, size))
    sys.stdout.buffer.flush()
    return 0  # go on


def main(path="models/bard.gguf", prompt="ROMEO:\n"):
    model, cache, fork = c_void_p(), c_void_p(), c_void_p()
    try:
        load_model(path.encode(), None, byref(model))
        text = prompt.encode()
        tokens, count = (c_int32 * 256)(), c_size_t()
        tokenize(model, text, len(text), tokens, len(tokens), byref(count))
        if count.value == 0:  # a model that begins no text with a token of its own
            raise ValueError("the prompt is empty")
        options = Options(size=ctypes.sizeof(Options))
        default_options(model, byref(options))
        options.max_tokens = 40

        # All of the prompt but its last token is read once, for both ways.
        read = count.value - 1
        last = (c_int32 * 1)(tokens[read])
        create_cache(model, None, byref(cache))
        if read > 0:
            append(cache, tokens, read, None)
        fork_cache(cache, byref(fork))

        generate(cache, last, 1, byref(options), show, None, None)
        print("\n--- or ---", flush=True)
        options.seed = 1
        generate(fork, last, 1, byref(options), show, None, None)
        # As if the first answer had never been given.
        print("\n--- the first again ---", flush=True)
        options.seed = 0
        rewind_cache(cache, read)
        generate(cache, last, 1, byref(options), show, None, None)
        print()
    finally:
        library.inlay_free_cache(fork)
        library.inlay_free_cache(cache)
        library.inlay_free_model(model)


main(*sys.argv[1:])
