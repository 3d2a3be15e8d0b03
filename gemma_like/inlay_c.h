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
 * their size; paths and messages end with a NUL. A pointer to elements may be NULL where their
 * number is 0. */
typedef enum inlay_status {
  INLAY_OK = 0,
  INLAY_INVALID_ARGUMENT = 1,   /* an argument, or the content of a file */
  INLAY_NOT_FOUND = 2,          /* no such file */
  INLAY_OUT_OF_RANGE = 3,       /* too long, or too far back */
  INLAY_RESOURCE_EXHAUSTED = 4, /* not enough memory */
  INLAY_DATA_LOSS = 5,          /* a damaged file */
  INLAY_CANCELLED = 6,          /* stopped by the callback before there was an answer */
  INLAY_ERROR = 7,              /* anything else; inlay_pull() of a library without downloads */
  INLAY_FAILED_PRECONDITION = 8 /* refused in the present state */
} inlay_status;

/* Structs begin with their size, which the caller sets to sizeof: later versions may have more
 * fields at the end, and fields that a caller does not know have their defaults. In an array all
 * have the same size. Structs without one, inlay_tokens and inlay_bias, never change. */

/* Callbacks may call these functions, free handles, and end the thread by pthread_exit(). What they
 * throw in C++ ends the call as an error does, with INLAY_ERROR or, for std::bad_alloc,
 * INLAY_RESOURCE_EXHAUSTED. They must not leave by longjmp().
 *
 * On a CPU with AMX a thread that calls these functions needs half a megabyte of stack. A process
 * that was forked computes in the thread that forked alone, and what other threads had in use at
 * that moment stays so: start processes anew where they compute (in Python, by `spawn`). */

/* The version of the library, "1.2.3", and of this interface: larger whenever something was added.
 */
const char* inlay_version(void);
int inlay_interface_version(void);

/* Installs a handler of SIGBUS for the whole process, unless it is there: a call that reads a model
 * file which has become shorter ends with INLAY_DATA_LOSS. Without it such a read ends the process.
 * To be called before models are loaded. Other faults go to the handler before it. Since version 6.
 */
void inlay_guard_mapped_files(void);

/* Makes all models of the process compute with this instruction set, "AVX2" or "NEON", for the same
 * bits on machines that differ; NULL or "": the best that the CPU has. INLAY_INVALID_ARGUMENT, with
 * the names of those that run on this CPU, for others; INLAY_FAILED_PRECONDITION while there is a
 * model. Since version 6. */
inlay_status inlay_set_target(const char* name);

/* One sentence that describes the last error of a call in this thread, valid until the thread's
 * next error; empty before the first. */
const char* inlay_last_error(void);

/* A model: one set of weights and its vocabulary. May be used from several threads at once. */
typedef struct inlay_model inlay_model;

/* One conversation with a model: all it has read and written. One call at a time may use it, and
 * none while an answer in it has not ended: INLAY_FAILED_PRECONDITION otherwise. Functions that
 * return no status are for the thread that uses it. */
typedef struct inlay_cache inlay_cache;

/* Messages as a model reads them; see inlay_render_chat(). */
typedef struct inlay_chat inlay_chat;

/* An answer that is generated in pieces; see inlay_start_generation(). */
typedef struct inlay_generation inlay_generation;

/* Handles may be freed in any order, also within callbacks: each keeps what it needs of the others,
 * and so does a call. Only an answer must not be freed while a call uses it. */

/* Calls of this thread that take longer ask `callback` about every 20 milliseconds whether to go
 * on. Unless it returns 0 they end with INLAY_CANCELLED and have changed nothing. NULL: nothing is
 * asked. Those that ask are inlay_pull(), inlay_append(), inlay_forward(), inlay_load_cache(),
 * inlay_perplexity(), inlay_embed() and, within the prompt, inlay_generate(), inlay_next_piece()
 * and inlay_next_pieces(); later inlay_generate() ends the answer as if its callback had stopped
 * it. No others ask, however long they take: inlay_load_model() reads all weights, and so does the
 * first inlay_fingerprint(), inlay_save_cache() or inlay_load_cache() with a model.
 *
 * The callback must not compute with the model of the call, whose passes run one after the other:
 * these same functions, and inlay_stop_generation() of another answer, are
 * INLAY_FAILED_PRECONDITION in it, with any conversation. It must not wait for a thread that
 * computes with that model either, which would never end.
 */
typedef int (*inlay_poll_callback)(void* user);
void inlay_set_poll(inlay_poll_callback callback, void* user);

/* Gets a model of Hugging Face by its name, USER/REPO or USER/REPO:TYPE, into the cache that other
 * tools share, unless it is there, and writes the path of its first file to `path`, with a NUL;
 * `size` is without it: INLAY_OUT_OF_RANGE when it does not fit in `capacity`. Environment
 * variables as for `inlay pull`. What a cancelled call has transferred stays. INLAY_ERROR where the
 * library was built without downloads. */
inlay_status inlay_pull(const char* name, char* path, size_t capacity, size_t* size);

/* The name of a config that the library was built with, or NULL from their number on. */
const char* inlay_config_name(size_t index);

typedef struct inlay_model_options {
  size_t size;
  int threads;       /* at least 1; 0: one per usable core */
  int check_tensors; /* not 0: refuse weights that are NaN or infinite */
  size_t max_batch;  /* the most tokens of one pass, which memory for computing is proportional to;
                        0: 512. Since version 6 */
} inlay_model_options;

/* Loads a GGUF file, a packed file or a program with a model inside. `options` may be NULL. */
inlay_status inlay_load_model(const char* path, const inlay_model_options* options,
                              inlay_model** model);

/* The model stays until its caches are freed too. NULL is fine. */
void inlay_free_model(inlay_model* model);

/* The number of columns of logits; ids are smaller. Some models have a few more of them than their
 * vocabulary has tokens: generation draws no such id. */
size_t inlay_vocabulary_size(const inlay_model* model);

typedef struct inlay_model_info {
  size_t size;
  size_t vocabulary_size; /* see above */
  size_t token_count;     /* of the vocabulary; 0: the file holds none */
  size_t context_length;  /* in tokens: the trained length according to the file */
  size_t embedding_dim;   /* of a model that embeds texts and computes no logits; 0: of others */
  size_t max_batch;       /* the most tokens of one inlay_forward() */
  size_t layers;
  int32_t bos; /* -1: there is none */
  int32_t eos;
  int32_t unknown;
  int adds_bos;       /* whether a text starts with BOS */
  int has_template;   /* whether the file has a chat template */
  const char* config; /* its name; stays as long as the model */
} inlay_model_info;

/* Sets the fields that the struct's size has. */
inlay_status inlay_get_model_info(const inlay_model* model, inlay_model_info* info);

/* What the file holds that the model is run without, and tensors that have others in their place: a
 * sentence in each line, most often none, as a text with a NUL; `size` is without it. Since
 * version 6. */
inlay_status inlay_model_notes(const inlay_model* model, char* text, size_t capacity, size_t* size);

/* What determines the bits of logits besides the tokens: the library's version, the versions of its
 * arithmetic and its sampler, the instruction set, the weights and `row_type`, as a text with a
 * NUL; `size` is without it. The first call reads all weights. */
inlay_status inlay_fingerprint(const inlay_model* model, int row_type, char* text, size_t capacity,
                               size_t* size);

/* The tokens of a text, starting with BOS if the model expects it. Writes the first `capacity` of
 * them, and their number to `count`: INLAY_OUT_OF_RANGE when it is larger than `capacity`. */
inlay_status inlay_tokenize(const inlay_model* model, const char* text, size_t size,
                            int32_t* tokens, size_t capacity, size_t* count);

typedef struct inlay_tokenize_options {
  size_t size;
  int add_bos;       /* 0: no; 1: yes; -1: if the model expects it */
  int parse_special; /* not 0: the text of a control token, "<end_of_turn>", becomes that token;
                        otherwise it stays plain text. For texts that the caller trusts. */
  int to_embed;      /* not 0: for inlay_embed(); other fields must have their defaults, -1 and 0 */
} inlay_tokenize_options;

/* The same with options, which may be NULL. */
inlay_status inlay_tokenize_with(const inlay_model* model, const char* text, size_t size,
                                 const inlay_tokenize_options* options, int32_t* tokens,
                                 size_t capacity, size_t* count);

/* The text of tokens, without a NUL. Writes its first `capacity` bytes to `text`, and the number of
 * all of them to `size`: INLAY_OUT_OF_RANGE when that is larger than `capacity`.
 * INLAY_INVALID_ARGUMENT when one of the tokens is below 0 or not below inlay_vocabulary_size();
 * nothing has been written then. */
inlay_status inlay_detokenize(const inlay_model* model, const int32_t* tokens, size_t count,
                              char* text, size_t capacity, size_t* size);

/* How a token is written. */
typedef enum inlay_token_form {
  INLAY_TOKEN_BYTES = 0, /* what it adds to a text, perhaps part of a character; "" for a control
                            token */
  INLAY_TOKEN_NAME = 1   /* as the vocabulary has it, "<eos>" */
} inlay_token_form;

/* The text of one token, in bytes and without a NUL, as inlay_detokenize(). */
inlay_status inlay_token_text(const inlay_model* model, int32_t token, int form, char* text,
                              size_t capacity, size_t* size);

/* What a token is, as a sum of these. */
typedef enum inlay_token_kind {
  INLAY_TOKEN_CONTROL = 1,   /* it has no text */
  INLAY_TOKEN_END = 2,       /* a model that generates it has finished */
  INLAY_TOKEN_SUPPRESSED = 4 /* never generated, the file says */
} inlay_token_kind;

/* 0 for ordinary tokens, for ids outside the vocabulary, and for a model that is NULL. */
int inlay_kind_of_token(const inlay_model* model, int32_t token);

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
  size_t limit_bytes; /* 0: none; else a conversation is refused that may need more in any call but
                         inlay_load_cache(): that one holds the old conversation and the new one,
                         and is INLAY_RESOURCE_EXHAUSTED where both together need more. An empty
                         conversation has room for any that is not longer than max_length. */
} inlay_cache_options;

/* An empty conversation. `options` may be NULL: rows are INLAY_ROWS_F16 then, and nothing is
 * limited but the length. */
inlay_status inlay_create_cache(const inlay_model* model, const inlay_cache_options* options,
                                inlay_cache** cache);

/* A copy of the conversation, which then continues independently. */
inlay_status inlay_fork_cache(const inlay_cache* cache, inlay_cache** fork);

/* NULL is fine. */
void inlay_free_cache(inlay_cache* cache);

/* Its length in tokens, the longest that it can have, and the least but 0 to which it can be
 * rewound now. */
size_t inlay_cache_length(const inlay_cache* cache);
size_t inlay_cache_max_length(const inlay_cache* cache);
size_t inlay_cache_rewind_floor(const inlay_cache* cache);

/* Its tokens, inlay_cache_length() of them; valid until it changes, which another thread must not
 * do meanwhile. */
const int32_t* inlay_cache_tokens(const inlay_cache* cache);

/* Copies them, in any thread: INLAY_FAILED_PRECONDITION while the conversation is in use, and
 * INLAY_OUT_OF_RANGE when there are more than `capacity`, of which the first are copied then;
 * `count` is set to their number. Since version 5. */
inlay_status inlay_copy_tokens(const inlay_cache* cache, int32_t* tokens, size_t capacity,
                               size_t* count);

/* The bytes of memory that these conversations refer to in all: what forks share counts once. The
 * conversations may be of different models; NULLs are skipped. */
inlay_status inlay_cache_bytes(const inlay_cache* const* caches, size_t count, size_t* bytes);

/* Makes the conversation end before token `length`, which is 0 or between
 * inlay_cache_rewind_floor() and its present length: INLAY_OUT_OF_RANGE otherwise. What follows has
 * the same bits as if the dropped tokens had never been there. Any length within
 * inlay_rewind_depth() of the greatest that the conversation has had, also before it was saved, is
 * fine. After inlay_trim_cache(), and in a conversation that was loaded from one saved after it,
 * this holds for the tokens that were appended since. */
inlay_status inlay_rewind_cache(inlay_cache* cache, size_t length);
size_t inlay_rewind_depth(const inlay_cache* cache);

/* Gives back the memory that only rewinds by more than `rewind` tokens need: of a hybrid's states
 * about half. For conversations that wait; the next tokens, of it or of a fork, take the memory
 * again and have the same bits. */
inlay_status inlay_trim_cache(inlay_cache* cache, size_t rewind);

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
 * memory, sets its `status` and has not advanced, while the others have; its logits are undefined,
 * and inlay_last_error() has the sentences of all that failed. On any other error none has
 * advanced. */
inlay_status inlay_forward(inlay_step* steps, size_t count, float* logits, size_t capacity);

/* Appends any number of tokens to a conversation, and writes the logits after the last [vocabulary
 * size] unless `logits` is NULL. */
inlay_status inlay_append(inlay_cache* cache, const int32_t* tokens, size_t count, float* logits);

/* The natural logarithm of the probability of tokens[i] according to the i-th row of `logits`
 * [count, vocabulary size], in `result` [count]. INLAY_DATA_LOSS for logits that are not finite. */
inlay_status inlay_log_probabilities(const inlay_model* model, const float* logits,
                                     const int32_t* tokens, size_t count, double* result);

/* How well a model predicts tokens. */
typedef struct inlay_likelihood {
  size_t size;
  size_t scored;   /* tokens */
  double mean_nll; /* negative log likelihood in nats, and the standard error of the mean */
  double mean_nll_error;
  double perplexity; /* exp(mean_nll), and its error to first order */
  double perplexity_error;
} inlay_likelihood;

/* Cuts the tokens into chunks, drops a last partial one, makes each a conversation of its own that
 * stores rows as `row_type`, and scores its second half: the protocol of llama-perplexity. `chunk`
 * is at least 4 and at most `count`. BOS replaces the first token of each for models that expect
 * it. INLAY_INVALID_ARGUMENT when a token is outside the vocabulary. */
inlay_status inlay_perplexity(const inlay_model* model, const int32_t* tokens, size_t count,
                              size_t chunk, int row_type, inlay_likelihood* likelihood);

typedef struct inlay_tokens {
  const int32_t* tokens;
  size_t count; /* at least 1, at most the context length */
} inlay_tokens;

/* The vectors of texts, each of length 1, or of zeros if that is what the weights give, [count,
 * embedding_dim]; `capacity` is how many floats fit. For models that embed texts:
 * INLAY_FAILED_PRECONDITION for others. */
inlay_status inlay_embed(const inlay_model* model, const inlay_tokens* texts, size_t count,
                         float* embeddings, size_t capacity);

typedef struct inlay_chat_input {
  size_t size;
  const char* messages;      /* JSON: a list of messages as in OpenAI's chat/completions. A content
                                that is a list is one text, each part on a line of its own; what is
                                no text, as a picture, is INLAY_INVALID_ARGUMENT */
  const char* tools;         /* JSON: a list of definitions of tools; NULL or "": none */
  const char* variables;     /* JSON: further variables of the template, {"enable_thinking": false};
                                NULL or "": none */
  int no_generation_prompt;  /* not 0: ends with the last message, not where the model answers */
  int64_t now;               /* what the template is told, in seconds since 1970; 0: the time */
  const char* chat_template; /* Jinja, instead of the model's template; NULL or "": that one. Each
                                call reads it anew. Since version 6 */
} inlay_chat_input;

/* Messages in the form that the model's chat template gives them; each string ends with a NUL. Only
 * the template writes control tokens: what looks like one in a message stays text.
 * INLAY_FAILED_PRECONDITION, with the template's words, when it refuses the chat. */
inlay_status inlay_render_chat(const inlay_model* model, const inlay_chat_input* input,
                               inlay_chat** chat);

/* NULL is fine. */
void inlay_free_chat(inlay_chat* chat);

/* As text and as tokens, BOS included; valid as long as the chat. NULL and a size of 0 for a chat
 * that is NULL; `size` and `count` must not be NULL. */
const char* inlay_chat_text(const inlay_chat* chat, size_t* size);
const int32_t* inlay_chat_tokens(const inlay_chat* chat, size_t* count);

/* Takes the answer to a chat, with its markers (see inlay_options), apart: a message of the
 * assistant as JSON, with "content" and, where there are any, "reasoning_content" and "tool_calls".
 * Bytes of it that are not UTF-8 become U+FFFD. Written as inlay_detokenize() writes a text. */
inlay_status inlay_read_answer(const inlay_chat* chat, const char* answer, size_t answer_size,
                               char* message, size_t capacity, size_t* size);

/* What an answer may be kept to. */
typedef enum inlay_shape_kind {
  INLAY_SHAPE_NONE = 0,
  INLAY_SHAPE_JSON_SCHEMA = 1, /* JSON that is valid by a schema; by {} any JSON */
  INLAY_SHAPE_REGEX = 2,       /* a text that a regular expression matches as a whole */
  INLAY_SHAPE_GBNF = 3         /* a text of a grammar in GBNF, as llama.cpp has them */
} inlay_shape_kind;

/* A number that is added to the logits of a token. */
typedef struct inlay_bias {
  int32_t token;
  float bias; /* -1000 to 1000 */
} inlay_bias;

typedef struct inlay_options {
  size_t size;
  size_t max_tokens;    /* to generate */
  float temperature;    /* 0: always the most likely token */
  int top_k;            /* only the top_k most likely tokens; 0: all */
  float top_p;          /* of these, the fewest whose probabilities add up to it; 1: all */
  float min_p;          /* only those with at least this share of the largest probability; 0: all */
  float repeat_penalty; /* for tokens among the last repeat_last_n, at least 0.01; 1: none */
  int repeat_last_n;
  uint64_t seed; /* the same seed, and so the default 0, gives the same answer each time */
  const char* const* stop_texts; /* the answer ends before the first of these, each with a NUL */
  size_t stop_text_count;
  int ignore_end;    /* not 0: continue after an end-of-generation token */
  size_t draft;      /* tokens to draft at once by prompt lookup; the answer is the same; 0: none */
  int shape_kind;    /* an inlay_shape_kind: what the answer has to look like */
  const char* shape; /* the schema, expression or grammar, with a NUL */
  const char* shape_after; /* the shape begins after this text, which ends the model's thoughts;
                              NULL or "": at once, or after the thoughts that the prompt of `chat`
                              has opened */
  int shape_in_order;      /* not 0: members of JSON objects come in the order of the schema */
  float presence_penalty;  /* subtracted from the logits of tokens that are in the answer, */
  float frequency_penalty; /* and for each time that they are */
  const inlay_chat* chat;  /* the chat to be answered: the text has the markers by which
                              inlay_read_answer() finds thoughts and calls; NULL: the text has
                              no such markers */
  const inlay_bias* logit_bias; /* since version 6 */
  size_t logit_bias_count;
  int log_probabilities; /* not 0: pieces have those of their tokens. Since version 6 */
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
 * to the callback. On an error within the prompt the conversation is as it was; on a later one it
 * has the prompt and the answer so far, perhaps without the tokens of the latest text. An answer
 * with a shape is complete only if `reason` is INLAY_STOP_END. A shape that cannot be read or holds
 * what is not supported is INLAY_INVALID_ARGUMENT, one that is too large INLAY_RESOURCE_EXHAUSTED.
 * A model keeps its latest 32 shapes ready: the first answer with one takes milliseconds more, the
 * first of all the time to sort the vocabulary. */
inlay_status inlay_generate(inlay_cache* cache, const int32_t* prompt, size_t count,
                            const inlay_options* options, inlay_text_callback callback, void* user,
                            inlay_stop_reason* reason);

/* The same in pieces, for callers that have no callbacks. The conversation belongs to the answer
 * until that has ended or is freed. */
inlay_status inlay_start_generation(inlay_cache* cache, const int32_t* prompt, size_t count,
                                    const inlay_options* options, inlay_generation** generation);

/* What an answer has more after a step. */
typedef struct inlay_piece {
  size_t size;
  const char* text; /* complete characters that cannot belong to a stop text; may be empty */
  size_t text_size;
  const int32_t* tokens; /* generated in this step, without an end-of-generation token */
  size_t token_count;
  int done; /* not 0: the last piece */
  inlay_stop_reason reason;
  const float* log_probabilities; /* if inlay_options ask: the natural logarithm of the probability
                                     that the model gives each token, before any option; NULL
                                     otherwise. Since version 6 */
  inlay_status status; /* of inlay_next_pieces(): the outcome for this answer. Since version 6 */
} inlay_piece;

/* Runs the next step, the first time the whole prompt before it, and sets the fields that the
 * struct's size has; its pointers are valid until the next call with this answer. On an error the
 * answer ends: within the prompt the conversation is then as it was, later it has the prompt and
 * the answer so far, perhaps without the tokens of the latest piece. INLAY_FAILED_PRECONDITION
 * after the last piece, and while another call uses the answer. */
inlay_status inlay_next_piece(inlay_generation* generation, inlay_piece* piece);

/* Runs the next steps of `count` different answers of one model in one pass, which takes less time
 * than a pass of each, and writes their pieces. The answers are the same. A prompt is computed in
 * parts, of which each is a step with an empty piece. `count` is at most max_batch of
 * inlay_get_model_info().
 *
 * Where an answer alone fails or has ended before, its piece has the error as `status`, is the last
 * one, and has nothing else; inlay_last_error() has the sentences of all that failed. On an error
 * of the whole pass all answers end. Otherwise as inlay_next_piece(). Since version 6. */
inlay_status inlay_next_pieces(inlay_generation* const* generations, size_t count,
                               inlay_piece* pieces);

/* Ends an answer after its latest piece: the conversation then has the tokens of all pieces. Before
 * the first it is as it was. Fine when the answer has ended. While inlay_next_piece() runs
 * for it, in another thread or around the callback that makes this call, this returns at once and
 * that call ends the answer: within the prompt with INLAY_CANCELLED, later with the last piece or
 * just after its piece. */
inlay_status inlay_stop_generation(inlay_generation* generation);

/* Frees an answer. If it has not ended, the conversation may lack tokens of the latest piece. NULL
 * is fine. */
void inlay_free_generation(inlay_generation* generation);

/* The token that `options` choose from the logits [vocabulary size] after a conversation's last
 * token: what inlay_generate() would append next. The last `answer` tokens of the conversation are
 * those of the answer. Shapes are for answers alone: INLAY_INVALID_ARGUMENT. */
inlay_status inlay_sample(const inlay_cache* cache, const float* logits,
                          const inlay_options* options, size_t answer, int32_t* token);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* INLAY_GEMMA_LIKE_INLAY_C_H_ */
