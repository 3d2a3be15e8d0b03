// What constrained output costs: the trie of a vocabulary, and the mask of allowed tokens at each
// token of some documents. Vocabularies are the arguments, GGUF files; beside each one alone, the
// tokens of all together are filled up to 262,144 with pairs of them.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gemma_like/grammar/compiled_grammar.h"
#include "gemma_like/grammar/grammar_builder.h"
#include "gemma_like/grammar/grammar_matcher.h"
#include "gemma_like/grammar/json_spelling.h"
#include "gemma_like/grammar/token_trie.h"
#include "io/gguf/gguf.h"
#include "io/tokenizer/load_tokenizer.h"

namespace inlay {
namespace {

constexpr size_t kManyTokens = 262144;

using Clock = std::chrono::steady_clock;
using Expr = GrammarBuilder::Expr;
using Rule = GrammarBuilder::Rule;

double MicrosecondsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

template <class T>
T Require(absl::StatusOr<T> result) {
  if (!result.ok()) {
    std::fprintf(stderr, "grammar_bench: %s\n", result.status().ToString().c_str());
    std::exit(1);
  }
  return *std::move(result);
}

// Cheap and the same in every run.
class Random {
 public:
  size_t Below(size_t n) {
    state_ = state_ * 6364136223846793005 + 1442695040888963407;
    return (state_ >> 33) % n;
  }

 private:
  uint64_t state_ = 1;
};

struct Case {
  const char* name;
  std::shared_ptr<const Grammar> grammar;
  std::vector<std::string> documents;
};

std::string Word(Random& random) {
  static constexpr const char* kParts[] = {"an",  "ber", "co", "de", "el",
                                           "fin", "gra", "ho", "in", "ly"};
  std::string word;
  for (size_t n = 1 + random.Below(4); n > 0; --n) word += kParts[random.Below(std::size(kParts))];
  return word;
}

std::string Sentence(Random& random, size_t most) {
  std::string text;
  while (text.size() + 14 < most) text += (text.empty() ? "" : " ") + Word(random);
  return text;
}

Expr Character(GrammarBuilder& b) {
  ByteSet hex, letter;
  for (const char c : absl::string_view("0123456789abcdefABCDEF")) hex.set(c);
  for (const char c : absl::string_view("\"\\/bfnrt")) letter.set(c);
  return b.Choice({b.CodePoint({{0x20, 0x21}, {0x23, 0x5B}, {0x5D, 0x10FFFF}}),
                   b.Sequence({b.Text("\\"), b.Byte(letter)}),
                   b.Sequence({b.Text("\\u"), b.Repeat(b.Byte(hex), 4, 4)})});
}

Expr String(GrammarBuilder& b, std::optional<size_t> most) {
  return b.Sequence({b.Text("\""), b.Repeat(Character(b), 0, most), b.Text("\"")});
}

std::string RandomValue(Random& random, size_t depth) {
  const size_t kind = random.Below(depth == 0 ? 3 : 5);
  if (kind == 0) return absl::StrCat(random.Below(100000), random.Below(2) == 0 ? "" : ".5e3");
  if (kind == 1) return random.Below(2) == 0 ? "true" : "null";
  if (kind == 2) return JsonSpelling(Sentence(random, 20 + random.Below(60)));
  std::string text = kind == 3 ? "[" : "{";
  for (size_t n = 1 + random.Below(4); n > 0; --n) {
    if (kind == 4) text += JsonSpelling(Word(random)) + ": ";
    text += RandomValue(random, depth - 1) + (n == 1 ? "" : ", ");
  }
  return text + (kind == 3 ? "]" : "}");
}

Case AnyValue() {
  GrammarBuilder b;
  const Rule value = b.Declare("value"), string = b.Declare("string");
  b.Define(string, String(b, std::nullopt));
  ByteSet digits, space;
  for (char c = '0'; c <= '9'; ++c) digits.set(c);
  for (const char c : absl::string_view(" \t\n\r")) space.set(c);
  const Expr some = b.Repeat(b.Byte(digits), 1, std::nullopt);
  const Expr fraction = b.Repeat(b.Sequence({b.Text("."), some}), 0, 1);
  const Expr exponent =
      b.Repeat(b.Sequence({b.Text("e"), b.Repeat(b.Text("-"), 0, 1), some}), 0, 1);
  const Expr number = b.Sequence({b.Repeat(b.Text("-"), 0, 1), some, fraction, exponent});
  const Expr spaces = b.Repeat(b.Byte(space), 0, 20);
  const Expr more =
      b.Repeat(b.Sequence({spaces, b.Text(","), spaces, b.Call(value)}), 0, std::nullopt);
  const Expr array =
      b.Sequence({b.Text("["), spaces, b.Repeat(b.Sequence({b.Call(value), more, spaces}), 0, 1),
                  b.Text("]")});
  GrammarBuilder::Object object;
  object.other = value;
  object.space = JsonSpace::kAny;
  b.Define(value, b.Choice({b.Call(string), number, array, b.AnyObject(object), b.Text("true"),
                            b.Text("false"), b.Text("null")}));
  Case made{"any JSON value", Require(std::move(b).Build(value)), {}};
  Random random;
  for (int i = 0; i < 40; ++i) {
    made.documents.push_back(
        absl::StrCat("[", RandomValue(random, 5), ", ", RandomValue(random, 4), "]"));
  }
  return made;
}

// Half of the properties are required; they come in any order.
Case TwentyProperties() {
  GrammarBuilder b;
  GrammarBuilder::Object object;
  Random random;
  std::vector<size_t> most;
  for (size_t i = 0; i < 20; ++i) {
    most.push_back(10 + 10 * i);
    const Rule value = b.Declare("value");
    b.Define(value, String(b, most.back()));
    object.members.push_back({absl::StrCat(Word(random), "_", i), value, i % 2 == 0});
  }
  const Rule root = b.Declare("root");
  b.Define(root, b.AnyObject(object));
  Case made{"20 properties, strings with lengths", Require(std::move(b).Build(root)), {}};
  for (int i = 0; i < 40; ++i) {
    std::vector<std::string> pairs;
    for (size_t k = 0; k < 20; ++k) {
      if (k % 2 == 1 && random.Below(2) == 0) continue;
      const std::string value = JsonSpelling(Sentence(random, most[k]));
      pairs.push_back(JsonSpelling(object.members[k].name) + ": " + value);
    }
    for (size_t k = pairs.size(); k > 1; --k) std::swap(pairs[k - 1], pairs[random.Below(k)]);
    std::string text = "{";
    for (const std::string& pair : pairs) text += (text.size() > 1 ? ",\n  " : "\n  ") + pair;
    made.documents.push_back(text + "\n}");
  }
  return made;
}

Case ThousandWords() {
  GrammarBuilder b;
  Random random;
  Case made{"one of 1000 words", nullptr, {}};
  std::vector<Expr> words;
  for (int i = 0; i < 1000; ++i) {
    const std::string word = JsonSpelling(absl::StrCat(Word(random), " ", Word(random), i));
    words.push_back(b.Text(word));
    if (i % 5 == 0) made.documents.push_back(word);
  }
  const Rule root = b.Declare("root");
  b.Define(root, b.Choice(words));
  made.grammar = Require(std::move(b).Build(root));
  return made;
}

// The longest token that the text begins with.
int32_t FirstToken(const TokenTrie& trie, absl::string_view text) {
  int32_t longest = -1;
  for (const TokenTrie::Part* part : {&trie.plain(), &trie.others()}) {
    size_t depth = 0;
    for (uint32_t i = 1; i < part->end() && depth < text.size();) {
      const TokenTrie::Node& node = part->nodes[i];
      if (node.depth <= depth) break;
      if (node.byte != static_cast<uint8_t>(text[depth])) {
        i = node.skip;
        continue;
      }
      ++depth;
      if (!part->TokensOf(i).empty() && (longest < 0 || depth > trie.Bytes(longest).size())) {
        longest = part->TokensOf(i)[0];
      }
      ++i;
    }
  }
  return longest;
}

void Print(const char* name, std::vector<double> times) {
  std::sort(times.begin(), times.end());
  double sum = 0;
  for (const double time : times) sum += time;
  std::printf("    %-24s %7zu masks, mean %8.1f us, p99 %8.1f us, worst %8.1f us\n", name,
              times.size(), sum / static_cast<double>(times.size()), times[times.size() * 99 / 100],
              times.back());
}

void Follow(const std::shared_ptr<CompiledGrammar>& grammar, const TokenTrie& trie,
            const std::vector<std::string>& documents, const char* name) {
  std::vector<double> times;
  for (const absl::string_view document : documents) {
    GrammarMatcher matcher(grammar);
    for (absl::string_view rest = document; !rest.empty();) {
      const Clock::time_point start = Clock::now();
      const auto allowed = Require(matcher.Allowed());
      times.push_back(MicrosecondsSince(start));
      const int32_t token = FirstToken(trie, rest);
      if (token < 0 || (allowed[token / 64] >> token % 64 & 1) == 0 ||
          !Require(matcher.Accept(token))) {
        std::fprintf(stderr, "grammar_bench: token %d is refused before %s\n", token,
                     std::string(rest).c_str());
        std::exit(1);
      }
      rest.remove_prefix(trie.Bytes(token).size());
    }
  }
  Print(name, std::move(times));
}

void Run(const std::string& name, const std::function<std::shared_ptr<const TokenTrie>()>& make,
         const std::vector<Case>& cases) {
  const Clock::time_point start = Clock::now();
  const std::shared_ptr<const TokenTrie> trie = make();
  std::printf("%s: %zu tokens, %zu plain ones, %zu others; trie in %.1f ms\n", name.c_str(),
              trie->size(), trie->plain().tokens.size(), trie->others().tokens.size(),
              MicrosecondsSince(start) / 1e3);
  for (const Case& one : cases) {
    std::printf("  %s\n", one.name);
    const auto half = one.documents.begin() + static_cast<ptrdiff_t>(one.documents.size() / 2);
    const auto grammar = Require(CompiledGrammar::Create(one.grammar, {.tokens = trie}));
    Follow(grammar, *trie, {one.documents[0]}, "cold, one document");
    Follow(grammar, *trie, {one.documents.begin() + 1, half}, "more documents");
    Follow(grammar, *trie, {half, one.documents.end()}, "still more");
    Follow(grammar, *trie, {half, one.documents.end()}, "the same again");
  }
}

// All tokens of the vocabularies, and pairs of them.
std::vector<std::string> ManyTokens(const std::vector<std::unique_ptr<Tokenizer>>& tokenizers) {
  std::vector<std::string> tokens;
  std::unordered_set<std::string> known;
  const auto add = [&](std::string token) {
    if (!token.empty() && known.insert(token).second) tokens.push_back(std::move(token));
  };
  for (const auto& tokenizer : tokenizers) {
    for (size_t i = 0; i < tokenizer->size(); ++i) {
      add(std::string(tokenizer->Piece(static_cast<int32_t>(i))));
    }
  }
  const size_t single = tokens.size();
  for (Random random; tokens.size() < kManyTokens;) {
    const std::string token = tokens[random.Below(single)] + tokens[random.Below(single)];
    if (token.size() <= 14) add(token);
  }
  return tokens;
}

int Main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: grammar_bench VOCABULARY.gguf...\n");
    return 2;
  }
  std::vector<Case> cases;
  cases.push_back(AnyValue());
  cases.push_back(TwentyProperties());
  cases.push_back(ThousandWords());
  std::vector<std::unique_ptr<Tokenizer>> tokenizers;
  for (int i = 1; i < argc; ++i) {
    tokenizers.push_back(Require(LoadTokenizer(Require(GgufFile::Open(argv[i])))));
    Run(
        argv[i], [&] { return Require(TokenTrie::Create(*tokenizers.back())); }, cases);
  }
  const std::vector<std::string> tokens = ManyTokens(tokenizers);
  Run(
      "all of them and pairs", [&] { return Require(TokenTrie::Create(tokens, {})); }, cases);
  return 0;
}

}  // namespace
}  // namespace inlay

int main(int argc, char** argv) { return inlay::Main(argc, argv); }
