/* Inlay for C, and for every language that can call C. (C++ has gemma_like/inlay.h.) */
#ifndef INLAY_GEMMA_LIKE_INLAY_C_H_
#define INLAY_GEMMA_LIKE_INLAY_C_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What functions return. Unless it is INLAY_OK, nothing that was passed has changed, except where a
 * function says otherwise, and inlay_last_error() describes the error. Texts are UTF-8 bytes with
 * their size; paths and messages end with a NUL. */
typedef enum inlay_status {
  INLAY_OK = 0,
  INLAY_INVALID_ARGUMENT = 1,   /* an argument, or the content of a file */
  INLAY_NOT_FOUND = 2,          /* no such file */
  INLAY_OUT_OF_RANGE = 3,       /* too long, or too far back */
  INLAY_RESOURCE_EXHAUSTED = 4, /* not enough memory */
  INLAY_DATA_LOSS = 5,          /* a damaged file */
  INLAY_CANCELLED = 6,          /* stopped by the callback before there was an answer */
  INLAY_ERROR = 7,              /* anything else */
  INLAY_FAILED_PRECONDITION = 8 /* refused in the present state */
} inlay_status;

/* Structs begin with their size, which the caller sets to sizeof: later versions may have more
 * fields at the end, and fields that a caller does not know have their defaults. */

/* The version of the library, "1.2.3", and of this interface: larger whenever something was added.
 */
const char* inlay_version(void);
int inlay_interface_version(void);

/* One sentence that describes the last error of a call in this thread, valid until the thread's
 * next error; empty before the first. */
const char* inlay_last_error(void);

/* A model: one set of weights and its vocabulary. May be used from several threads at once. */
typedef struct inlay_model inlay_model;

/* One conversation with a model: all it has read and written. One thread at a time may use it. */
typedef struct inlay_cache inlay_cache;

typedef struct inlay_model_options {
  size_t size;
  int threads;       /* at least 1; 0: one per usable core */
  int check_tensors; /* not 0: refuse weights that are NaN or infinite */
} inlay_model_options;

/* Loads a GGUF file, a packed file or a program with a model inside. `options` may be NULL. */
inlay_status inlay_load_model(const char* path, const inlay_model_options* options,
                              inlay_model** model);

/* The model stays until its caches are freed too. NULL is fine. */
void inlay_free_model(inlay_model* model);

/* The number of columns of logits; ids are smaller. Some models have a few more of them than their
 * vocabulary has tokens: generation draws no such id. */
size_t inlay_vocabulary_size(const inlay_model* model);

/* The tokens of a text, starting with BOS if the model expects it. Writes the first `capacity` of
 * them, and their number to `count`: INLAY_OUT_OF_RANGE when it is larger than `capacity`. */
inlay_status inlay_tokenize(const inlay_model* model, const char* text, size_t size,
                            int32_t* tokens, size_t capacity, size_t* count);

/* The text of tokens, likewise, in bytes and without a NUL. INLAY_INVALID_ARGUMENT when one of them
 * is below 0 or not below inlay_vocabulary_size(); nothing has been written then. */
inlay_status inlay_detokenize(const inlay_model* model, const int32_t* tokens, size_t count,
                              char* text, size_t capacity, size_t* size);

/* How the keys and values of a conversation are stored. */
typedef enum inlay_row_type {
  INLAY_ROWS_F32 = 0,
  INLAY_ROWS_F16 = 1,
  INLAY_ROWS_BF16 = 2,
  INLAY_ROWS_Q8 = 3 /* int8 times a scale for each row */
} inlay_row_type;

typedef struct inlay_cache_options {
  size_t size;
  size_t max_length;  /* in tokens; 0: 4096, or the model's trained length if that is less */
  int row_type;       /* an inlay_row_type */
  size_t limit_bytes; /* 0: none; else a conversation that may need more is refused */
} inlay_cache_options;

/* An empty conversation. `options` may be NULL. */
inlay_status inlay_create_cache(const inlay_model* model, const inlay_cache_options* options,
                                inlay_cache** cache);

/* A copy of the conversation, which then continues independently. */
inlay_status inlay_fork_cache(const inlay_cache* cache, inlay_cache** fork);

/* NULL is fine. */
void inlay_free_cache(inlay_cache* cache);

/* Its length in tokens, the longest that it can have, and the least to which it can be rewound now.
 */
size_t inlay_cache_length(const inlay_cache* cache);
size_t inlay_cache_max_length(const inlay_cache* cache);
size_t inlay_cache_rewind_floor(const inlay_cache* cache);

/* Makes the conversation end before token `length`, which is between inlay_cache_rewind_floor() and
 * its present length: INLAY_OUT_OF_RANGE otherwise. What follows has the same bits as if the
 * dropped tokens had never been there. Any length within inlay_rewind_depth() of the greatest that
 * the conversation has had since it was created or loaded is fine. */
inlay_status inlay_rewind_cache(inlay_cache* cache, size_t length);
size_t inlay_rewind_depth(const inlay_cache* cache);

/* Writes the conversation to a file, which then holds all of it or, on error, what it held before.
 * Only the owner can read a new file. Refused if the file exists and is not a saved conversation,
 * or is in use. */
inlay_status inlay_save_cache(const inlay_cache* cache, const char* path);

/* Replaces the conversation by the one in the file. If that was computed with another version of
 * the library, other weights, another instruction set or another row type, it is computed again
 * from its tokens, and `recomputed` (which may be NULL) is set to their number, otherwise to 0; if
 * `exact` is not 0 it is refused instead, with INLAY_FAILED_PRECONDITION. */
inlay_status inlay_load_cache(inlay_cache* cache, const char* path, int exact, size_t* recomputed);

/* The next tokens of one conversation, at least one. */
typedef struct inlay_step {
  size_t size;
  inlay_cache* cache;
  const int32_t* tokens;
  size_t count;
  size_t logit_rows;   /* logits are written after each of the last logit_rows tokens */
  inlay_status status; /* is set to the outcome of this step */
} inlay_step;

/* Appends each step's tokens to its conversation, all in one pass, and writes the logits, step
 * after step [sum of logit_rows, vocabulary size]; `capacity` is how many floats fit in `logits`.
 * All conversations belong to one model, and each is given once. For a prompt longer than a batch,
 * use inlay_append(). A step that fails alone, because its conversation is too long or lacks
 * memory, sets its `status` and has not advanced, while the others have; its logits are undefined.
 * On any other error none has advanced. */
inlay_status inlay_forward(inlay_step* steps, size_t count, float* logits, size_t capacity);

/* Appends any number of tokens to a conversation, and writes the logits after the last [vocabulary
 * size] unless `logits` is NULL. */
inlay_status inlay_append(inlay_cache* cache, const int32_t* tokens, size_t count, float* logits);

/* What an answer may be kept to. */
typedef enum inlay_shape_kind {
  INLAY_SHAPE_NONE = 0,
  INLAY_SHAPE_JSON_SCHEMA = 1, /* JSON that is valid by a schema; by {} any JSON */
  INLAY_SHAPE_REGEX = 2,       /* a text that a regular expression matches as a whole */
  INLAY_SHAPE_GBNF = 3         /* a text of a grammar in GBNF, as llama.cpp has them */
} inlay_shape_kind;

typedef struct inlay_options {
  size_t size;
  size_t max_tokens;    /* to generate */
  float temperature;    /* 0: always the most likely token */
  int top_k;            /* only the top_k most likely tokens; 0: all */
  float top_p;          /* of these, the fewest whose probabilities add up to it; 1: all */
  float min_p;          /* only those with at least this share of the largest probability; 0: all */
  float repeat_penalty; /* for tokens among the last repeat_last_n; 1: none */
  int repeat_last_n;
  uint64_t seed;                 /* the same seed gives the same answer */
  const char* const* stop_texts; /* the answer ends before the first of these, each with a NUL */
  size_t stop_text_count;
  int ignore_end;    /* not 0: continue after an end-of-generation token */
  size_t draft;      /* tokens to draft at once by prompt lookup; the answer is the same; 0: none */
  int shape_kind;    /* an inlay_shape_kind: what the answer has to look like */
  const char* shape; /* the schema, expression or grammar, with a NUL */
  const char* shape_after; /* the shape begins after this text, which ends the model's thoughts;
                              NULL or "": at once */
  int shape_in_order;      /* not 0: members of JSON objects come in the order of the schema */
} inlay_options;

/* Sets options, whose size must be set, to the model's defaults, with 256 tokens and seed 0. */
inlay_status inlay_default_options(const inlay_model* model, inlay_options* options);

/* Why an answer ended. */
typedef enum inlay_stop_reason {
  INLAY_STOP_LENGTH = 0,    /* max_tokens */
  INLAY_STOP_END = 1,       /* an end-of-generation token */
  INLAY_STOP_CONTEXT = 2,   /* the conversation has max_length tokens */
  INLAY_STOP_CANCELLED = 3, /* the callback did not return 0 */
  INLAY_STOP_TEXT = 4       /* one of the stop texts */
} inlay_stop_reason;

/* Receives the answer in pieces of complete characters. A return value other than 0 stops it. */
typedef int (*inlay_text_callback)(const char* text, size_t size, void* user);

/* Appends the `count` >= 1 tokens of a prompt to the conversation, then generates the answer.
 * `options` may be NULL for the defaults, `callback` and `reason` may be NULL; `user` is passed on
 * to the callback. An answer with a shape is complete only if `reason` is INLAY_STOP_END. A shape
 * that cannot be read or holds what is not supported is INLAY_INVALID_ARGUMENT, one that is too
 * large INLAY_RESOURCE_EXHAUSTED. A model keeps its latest 32 shapes ready: the first answer with
 * one takes milliseconds more, the first of all the time to sort the vocabulary. */
inlay_status inlay_generate(inlay_cache* cache, const int32_t* prompt, size_t count,
                            const inlay_options* options, inlay_text_callback callback, void* user,
                            inlay_stop_reason* reason);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* INLAY_GEMMA_LIKE_INLAY_C_H_ */
