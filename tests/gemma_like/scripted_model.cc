#include "tests/gemma_like/scripted_model.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "configs/test_lfm2.h"
#include "gemma_like/chat/chat_renderer.h"
#include "gemma_like/files/describe_synth.h"
#include "gemma_like/strings.h"
#include "io/gguf/gguf_writer.h"
#include "nlohmann/json.hpp"
#include "ops/quant/weight_type.h"
#include "tests/io/tokenizer/test_vocabulary.h"

namespace inlay {
namespace {

using Config = TestLfm2;
constexpr size_t kDim = Config::kModelDim;
constexpr size_t kVocab = Config::kVocabSize;

// Token types of GGUF files.
constexpr int32_t kNormal = 1, kControl = 3, kUserDefined = 4;
constexpr int32_t kEos = 2;  // of SpmBase

// The tokens of a script. The embedding of a token is one of the unit vectors, whose number is the
// token's state; as the model's layers add nothing to it, the output matrix says what follows.
class TokenChain {
 public:
  explicit TokenChain(const ModelScript& script) : control_(script.control_tokens) {
    followers_ = {{kEos}};  // state 0: all tokens that are not in the script
    states_.resize(vocabulary_.tokens.size(), 0);
    for (const std::string& text : control_) AddToken(text, kControl);
    for (const ScriptedAnswer& answer : script.answers) AddAnswer(answer);
  }

  absl::Status Check() const {
    if (followers_.size() <= kDim && vocabulary_.tokens.size() <= kVocab) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        "the script takes ", followers_.size(), " states and ", vocabulary_.tokens.size(),
        " tokens, more than the ", kDim, " and ", kVocab, " of the model"));
  }

  void WriteVocabulary(GgufWriter& writer) const {
    TestVocabulary vocabulary = vocabulary_;
    while (vocabulary.tokens.size() < kVocab)
      vocabulary.Add(absl::StrCat("<unused-", vocabulary.tokens.size(), ">"), kControl);
    const std::string prefix = "tokenizer.ggml.";
    writer.SetString(prefix + "model", vocabulary.model);
    writer.SetStrings(prefix + "tokens", vocabulary.tokens);
    writer.SetInt32s(prefix + "token_type", vocabulary.types);
    writer.SetFloat32s(prefix + "scores", *vocabulary.scores);
    for (const auto& [name, id] : vocabulary.ids) writer.SetUint32(prefix + name, id);
    writer.SetBool(prefix + "add_bos_token", false);
    writer.SetBool(prefix + "add_space_prefix", false);
  }

  // Both matrices [kVocab, kDim]. The last norm turns a unit vector into one of length sqrt(kDim),
  // so the logit of what follows is 64, and that of all other tokens 0.
  std::vector<float> Embedding() const {
    std::vector<float> rows(kVocab * kDim, 0.0f);
    for (size_t token = 0; token < kVocab; ++token)
      rows[token * kDim + (token < states_.size() ? states_[token] : 0)] = 1;
    return rows;
  }
  std::vector<float> Output() const {
    std::vector<float> rows(kVocab * kDim, 0.0f);
    for (size_t state = 0; state < followers_.size(); ++state)
      for (const int32_t token : followers_[state]) rows[token * kDim + state] = 4;
    return rows;
  }

 private:
  int32_t AddToken(const std::string& text, int32_t type) {
    vocabulary_.Add(text, type);
    states_.push_back(0);
    return static_cast<int32_t>(states_.size()) - 1;
  }
  size_t AddState(int32_t token) {
    followers_.emplace_back();
    return states_[static_cast<size_t>(token)] = followers_.size() - 1;
  }

  size_t StartState(const std::string& text) {
    if (const auto known = starts_.find(text); known != starts_.end()) return known->second;
    const auto control = std::find(control_.begin(), control_.end(), text);
    const size_t first_control = SpmBase().tokens.size();
    const int32_t token =
        control == control_.end()
            ? AddToken(text, kUserDefined)
            : static_cast<int32_t>(first_control + static_cast<size_t>(control - control_.begin()));
    return starts_[text] = AddState(token);
  }

  // Normal tokens write a space as U+2581.
  int32_t AddPiece(const std::string& text) {
    if (std::find(control_.begin(), control_.end(), text) != control_.end())
      return AddToken(text, kControl);
    return AddToken(absl::StrReplaceAll(text, {{" ", "\u2581"}}), kNormal);
  }

  // Every piece gets a token of its own, so that equal pieces may be followed by different ones.
  void AddAnswer(const ScriptedAnswer& answer) {
    size_t state = StartState(answer.start);
    int32_t first = kEos;
    for (size_t i = 0; i < answer.pieces.size(); ++i) {
      const int32_t token = AddPiece(answer.pieces[i]);
      if (i == 0) first = token;
      followers_[state].push_back(token);
      state = AddState(token);
    }
    followers_[state].push_back(answer.endless ? first : kEos);
  }

  const std::vector<std::string> control_;
  TestVocabulary vocabulary_ = SpmBase();
  std::vector<size_t> states_;                   // of the tokens
  std::vector<std::vector<int32_t>> followers_;  // of the states
  std::map<std::string, size_t> starts_;         // their states
};

void WriteMetadata(const ModelScript& script, const TokenChain& chain, GgufWriter& writer) {
  const std::string architecture(ToAbsl(Config::kArchitecture));
  writer.SetString("general.architecture", architecture);
  writer.SetString("general.name", "a scripted model");
  writer.SetUint32(architecture + ".context_length", 131072);
  MetadataWriter metadata(architecture, writer);
  Config::Metadata<Config>(metadata);
  chain.WriteVocabulary(writer);
  writer.SetString(std::string(kChatTemplateKey), script.chat_template);
}

// Embeddings and outputs follow the chain, norms multiply by 1, and all other matrices are 0.
std::vector<float> Values(const SynthTensor& tensor, const TokenChain& chain) {
  if (tensor.name == "token_embd.weight") return chain.Embedding();
  if (tensor.name == "output.weight") return chain.Output();
  size_t count = 1;
  for (const uint64_t dim : tensor.dims) count *= dim;
  return std::vector<float>(count, IsMatrix(tensor.use) ? 0.0f : 1.0f);
}

}  // namespace

absl::StatusOr<ModelScript> ParseModelScript(absl::string_view json, std::string chat_template) {
  ModelScript script{
      .chat_template = std::move(chat_template), .control_tokens = {}, .answers = {}};
  try {
    const auto parsed = nlohmann::json::parse(json.begin(), json.end());
    script.control_tokens = parsed.at("control_tokens").get<std::vector<std::string>>();
    for (const auto& answer : parsed.at("answers")) {
      script.answers.push_back({.start = answer.at("start").get<std::string>(),
                                .pieces = answer.at("pieces").get<std::vector<std::string>>(),
                                .endless = answer.value("endless", false)});
    }
  } catch (const nlohmann::json::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat("the script: ", error.what()));
  }
  return script;
}

absl::Status WriteScriptedModel(const ModelScript& script, const std::string& path) {
  const TokenChain chain(script);
  INLAY_RETURN_IF_ERROR(chain.Check());
  std::vector<SynthTensor> tensors = DescribeSynth<Config>().tensors;
  tensors.push_back(
      {.name = "output.weight", .dims = {kDim, kVocab}, .use = TensorUse::kEmbedding});
  GgufWriter writer;
  WriteMetadata(script, chain, writer);
  for (const SynthTensor& tensor : tensors)
    INLAY_RETURN_IF_ERROR(writer.AddTensor(tensor.name, tensor.dims, WeightType::kF32));
  INLAY_RETURN_IF_ERROR(writer.Open(path));
  for (const SynthTensor& tensor : tensors) {
    const std::vector<float> values = Values(tensor, chain);
    INLAY_RETURN_IF_ERROR(writer.AppendData(absl::MakeConstSpan(
        reinterpret_cast<const uint8_t*>(values.data()), values.size() * sizeof(float))));
  }
  return writer.Finish();
}

}  // namespace inlay
