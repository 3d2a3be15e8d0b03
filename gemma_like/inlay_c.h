/* Inlay for C, and for every language that can call C. (C++ has gemma_like/inlay.h.) */
#ifndef INLAY_GEMMA_LIKE_INLAY_C_H_
#define INLAY_GEMMA_LIKE_INLAY_C_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What functions return. Where it is not INLAY_OK, nothing that was passed has changed unless the
 * function says otherwise, and inlay_last_error() has a sentence about it. Texts are bytes in UTF-8
 * with their size; paths and messages end with a NUL. */
typedef enum inlay_status {
  INLAY_OK = 0,
  INLAY_INVALID_ARGUMENT = 1,   /* something that was passed, or what a file holds */
  INLAY_NOT_FOUND = 2,          /* no such file */
  INLAY_OUT_OF_RANGE = 3,       /* too long, or too far back */
  INLAY_RESOURCE_EXHAUSTED = 4, /* not enough memory */
  INLAY_DATA_LOSS = 5,          /* a damaged file */
  INLAY_CANCELLED = 6,          /* the callback said so before there was an answer */
  INLAY_ERROR = 7               /* anything else */
} inlay_status;

/* The sentence about the last call of this thread that did not return INLAY_OK, valid until the
 * thread's next such call; empty before the first. */
const char* inlay_last_error(void);

/* A model: one set of weights and its vocabulary. May be used from several threads at once. */
typedef struct inlay_model inlay_model;

/* One conversation with a model: all it has read and written. One thread at a time may use it. */
typedef struct inlay_cache inlay_cache;

/* Loads a GGUF file, a packed file or a program with a model inside. `threads` >= 1. */
inlay_status inlay_load_model(const char* path, int threads, inlay_model** model);

/* The model stays until its caches are freed too. NULL is fine. */
void inlay_free_model(inlay_model* model);

/* How many tokens there are; ids are smaller. */
size_t inlay_vocabulary_size(const inlay_model* model);

/* The tokens of a text, with the one that marks its beginning where the model wants that. Writes
 * the first `capacity` of them, and to `count` how many there are: INLAY_OUT_OF_RANGE when they are
 * more. */
inlay_status inlay_tokenize(const inlay_model* model, const char* text, size_t size,
                            int32_t* tokens, size_t capacity, size_t* count);

/* The text of tokens, likewise, in bytes and without a NUL. INLAY_INVALID_ARGUMENT when one of them
 * is below 0 or not below inlay_vocabulary_size(); nothing has been written then. */
inlay_status inlay_detokenize(const inlay_model* model, const int32_t* tokens, size_t count,
                              char* text, size_t capacity, size_t* size);

/* An empty conversation of at most `max_length` tokens. */
inlay_status inlay_create_cache(const inlay_model* model, size_t max_length, inlay_cache** cache);

/* A conversation with the same past that goes on by itself. */
inlay_status inlay_fork_cache(const inlay_cache* cache, inlay_cache** fork);

/* NULL is fine. */
void inlay_free_cache(inlay_cache* cache);

/* Its length in tokens. */
size_t inlay_cache_length(const inlay_cache* cache);

/* Makes the conversation end before token `length`. Any length is fine that is at most the present
 * one and within 32 tokens of the greatest that the conversation has had since it was created or
 * loaded; after a rewind that greatest length stays. INLAY_OUT_OF_RANGE for a length that is too
 * far back, or beyond the end. */
inlay_status inlay_rewind_cache(inlay_cache* cache, size_t length);

/* Writes the conversation to a file, which has all of it or what it had before. A new file is its
 * owner's alone. Refused where a file exists that is no conversation, or is in use. */
inlay_status inlay_save_cache(const inlay_cache* cache, const char* path);

/* Becomes the conversation in the file, which the same model must have written. */
inlay_status inlay_load_cache(inlay_cache* cache, const char* path);

typedef struct inlay_options {
  size_t max_tokens;    /* to generate */
  float temperature;    /* 0: the likeliest token always */
  int top_k;            /* of so many of the likeliest; 0: of all */
  float top_p;          /* of the fewest of these whose probabilities reach this; 1: of all */
  float min_p;          /* of those with this share of the largest probability; 0: of all */
  float repeat_penalty; /* of tokens among the last repeat_last_n; 1: none */
  int repeat_last_n;
  uint64_t seed; /* the same seed gives the same answer */
} inlay_options;

/* What suits the model: 256 tokens, seed 0. */
void inlay_default_options(const inlay_model* model, inlay_options* options);

/* Why an answer ended. */
typedef enum inlay_stop_reason {
  INLAY_STOP_LENGTH = 0,   /* max_tokens */
  INLAY_STOP_END = 1,      /* the model has finished */
  INLAY_STOP_CONTEXT = 2,  /* the conversation has max_length tokens */
  INLAY_STOP_CANCELLED = 3 /* the callback said so */
} inlay_stop_reason;

/* Receives the answer in pieces of whole characters. Anything but 0 stops. */
typedef int (*inlay_text_callback)(const char* text, size_t size, void* user);

/* Appends the `count` >= 1 tokens of a prompt to the conversation, and then what the model answers.
 * `options` may be NULL for the defaults, `callback` and `reason` may be NULL; `user` is passed on
 * to the callback. */
inlay_status inlay_generate(inlay_cache* cache, const int32_t* prompt, size_t count,
                            const inlay_options* options, inlay_text_callback callback, void* user,
                            inlay_stop_reason* reason);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* INLAY_GEMMA_LIKE_INLAY_C_H_ */
