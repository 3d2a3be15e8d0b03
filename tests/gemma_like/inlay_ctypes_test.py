"""The C API from Python, by ctypes alone: inlay_ctypes_test.py LIBRARY MODEL"""
import ctypes
import re
import sys

lib = ctypes.CDLL(sys.argv[1])
lib.inlay_version.restype = ctypes.c_char_p
lib.inlay_last_error.restype = ctypes.c_char_p
lib.inlay_vocabulary_size.restype = ctypes.c_size_t
lib.inlay_cache_length.restype = ctypes.c_size_t
size_t, pointer = ctypes.c_size_t, ctypes.c_void_p


class Options(ctypes.Structure):
    _fields_ = [("size", size_t), ("max_tokens", size_t), ("temperature", ctypes.c_float),
                ("top_k", ctypes.c_int), ("top_p", ctypes.c_float), ("min_p", ctypes.c_float),
                ("repeat_penalty", ctypes.c_float), ("repeat_last_n", ctypes.c_int),
                ("seed", ctypes.c_uint64), ("stop_texts", ctypes.POINTER(ctypes.c_char_p)),
                ("stop_text_count", size_t), ("ignore_end", ctypes.c_int), ("draft", size_t),
                ("shape_kind", ctypes.c_int), ("shape", ctypes.c_char_p),
                ("shape_after", ctypes.c_char_p), ("shape_in_order", ctypes.c_int)]


class Step(ctypes.Structure):
    _fields_ = [("size", size_t), ("cache", pointer), ("tokens", ctypes.POINTER(ctypes.c_int32)),
                ("count", size_t), ("logit_rows", size_t), ("status", ctypes.c_int)]


def check(status):
    assert status == 0, lib.inlay_last_error()


def new_cache(model):
    cache = pointer()
    check(lib.inlay_create_cache(model, None, ctypes.byref(cache)))
    return cache


model = pointer()
check(lib.inlay_load_model(sys.argv[2].encode(), None, ctypes.byref(model)))
text = b"To be, or not to be"
tokens = (ctypes.c_int32 * 64)()
count = size_t()
check(lib.inlay_tokenize(model, text, size_t(len(text)), tokens, size_t(64), ctypes.byref(count)))

options = Options(size=ctypes.sizeof(Options))
check(lib.inlay_default_options(model, ctypes.byref(options)))
assert options.max_tokens == 256 and options.draft == 0 and not options.stop_texts
options.max_tokens = 20
options.temperature = 0

answer = []


@ctypes.CFUNCTYPE(ctypes.c_int, pointer, size_t, pointer)
def on_text(data, size, user):
    answer.append(ctypes.string_at(data, size))
    return 0


generated = new_cache(model)
check(lib.inlay_generate(generated, tokens, count, ctypes.byref(options), on_text, None, None))

# The same by hand: logits, the largest of them, and on.
vocabulary = lib.inlay_vocabulary_size(model)
logits = (ctypes.c_float * vocabulary)()
by_hand = new_cache(model)
check(lib.inlay_append(by_hand, tokens, count, logits))
chosen = []
while len(chosen) < 20:
    chosen.append(max(range(vocabulary), key=lambda i: (logits[i], -i)))
    one = (ctypes.c_int32 * 1)(chosen[-1])
    step = Step(ctypes.sizeof(Step), by_hand, one, 1, 1, 7)
    check(lib.inlay_forward(ctypes.byref(step), size_t(1), logits, size_t(vocabulary)))
    assert step.status == 0
buffer = ctypes.create_string_buffer(1000)
size = size_t()
ids = (ctypes.c_int32 * 20)(*chosen)
check(lib.inlay_detokenize(model, ids, size_t(20), buffer, size_t(1000), ctypes.byref(size)))
assert b"".join(answer) == buffer.raw[:size.value], (answer, buffer.raw[:size.value])
assert lib.inlay_cache_length(by_hand) == lib.inlay_cache_length(generated) == count.value + 20

# An answer that a regular expression matches, which ends there.
options.shape_kind = 2
options.shape = b" (one|two), (three|four)[.]"
answer.clear()
shaped = new_cache(model)
reason = ctypes.c_int()
check(lib.inlay_generate(shaped, tokens, count, ctypes.byref(options), on_text, None,
                         ctypes.byref(reason)))
assert re.fullmatch(options.shape, b"".join(answer)) and reason.value == 1, (answer, reason)
options.shape = b"("
assert lib.inlay_generate(shaped, tokens, count, ctypes.byref(options), on_text, None, None) == 1

assert lib.inlay_load_model(b"no/such/file", None, ctypes.byref(pointer())) == 2
assert b"no/such/file" in lib.inlay_last_error()
for cache in (generated, by_hand, shaped):
    lib.inlay_free_cache(cache)
lib.inlay_free_model(model)
print(lib.inlay_version().decode(), b"".join(answer).decode())
