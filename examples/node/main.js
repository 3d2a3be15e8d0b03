// Two ways to go on from one prompt, and back again: node main.js [MODEL [PROMPT]]
//
// By libinlay.so and the package koffi, which calls C. $INLAY_LIBRARY names the library where the system does not find it.
import koffi from 'koffi';

const library = koffi.load(process.env.INLAY_LIBRARY ?? 'libinlay.so.0');
koffi.opaque('inlay_model');
koffi.opaque('inlay_cache');
// The first fields of inlay_options. Its size tells the library that there are no more.
const Options = koffi.struct('inlay_options', {
  size: 'size_t',
  max_tokens: 'size_t',
  temperature: 'float',
  top_k: 'int',
  top_p: 'float',
  min_p: 'float',
  repeat_penalty: 'float',
  repeat_last_n: 'int',
  seed: 'uint64_t',
});
koffi.proto('int inlay_text_callback(const void* text, size_t size, void* user)');

const lastError = library.func('const char* inlay_last_error()');
// A function that returns an inlay_status, and throws what is not INLAY_OK.
function checked(declaration) {
  const call = library.func(declaration);
  return (...values) => {
    if (call(...values) !== 0) throw new Error(lastError());
  };
}
const loadModel = checked('int inlay_load_model(const char* path, const void* options, _Out_ inlay_model** model)');
const tokenize = checked('int inlay_tokenize(inlay_model* model, const char* text, size_t size, _Out_ int32_t* tokens, size_t capacity, _Out_ size_t* count)');
const createCache = checked('int inlay_create_cache(inlay_model* model, const void* options, _Out_ inlay_cache** cache)');
const forkCache = checked('int inlay_fork_cache(inlay_cache* cache, _Out_ inlay_cache** fork)');
const append = checked('int inlay_append(inlay_cache* cache, const int32_t* tokens, size_t count, float* logits)');
const rewindCache = checked('int inlay_rewind_cache(inlay_cache* cache, size_t length)');
const defaultOptions = checked('int inlay_default_options(inlay_model* model, _Inout_ inlay_options* options)');
const generate = checked('int inlay_generate(inlay_cache* cache, const int32_t* prompt, size_t count, const inlay_options* options, inlay_text_callback* callback, void* user, int* reason)');
const freeCache = library.func('void inlay_free_cache(inlay_cache* cache)');
const freeModel = library.func('void inlay_free_model(inlay_model* model)');

function show(text, size) {
  process.stdout.write(Buffer.from(koffi.decode(text, 'uint8_t', Number(size))));
  return 0; // go on
}

const [path = 'models/bard.gguf', prompt = 'ROMEO:\n'] = process.argv.slice(2);
const model = [null];
const cache = [null];
const fork = [null];
try {
  loadModel(path, null, model);
  const space = new Int32Array(256);
  const count = [0];
  tokenize(model[0], prompt, Buffer.byteLength(prompt), space, space.length, count);
  const tokens = space.subarray(0, Number(count[0]));
  // A model that begins no text with a token of its own has none here.
  if (tokens.length === 0) throw new Error('the prompt is empty');
  const options = { size: koffi.sizeof(Options) };
  defaultOptions(model[0], options);
  options.max_tokens = 40;

  // All of the prompt but its last token is read once, for both ways.
  const read = tokens.length - 1;
  const last = tokens.slice(read);
  createCache(model[0], null, cache);
  if (read > 0) append(cache[0], tokens, read, null);
  forkCache(cache[0], fork);

  generate(cache[0], last, 1, options, show, null, null);
  process.stdout.write('\n--- or ---\n');
  generate(fork[0], last, 1, { ...options, seed: 1 }, show, null, null);
  // As if the first answer had never been given.
  process.stdout.write('\n--- the first again ---\n');
  rewindCache(cache[0], read);
  generate(cache[0], last, 1, options, show, null, null);
  process.stdout.write('\n');
} finally {
  freeCache(fork[0]);
  freeCache(cache[0]);
  freeModel(model[0]);
}
