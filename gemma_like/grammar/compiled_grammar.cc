#include "gemma_like/grammar/compiled_grammar.h"

#include <utility>

#include "base/out_of_memory.h"

namespace inlay {

absl::StatusOr<std::shared_ptr<CompiledGrammar>> CompiledGrammar::Create(
    std::shared_ptr<const Grammar> grammar, const CompiledGrammarOptions& options) {
  return OrOutOfMemory("a grammar", [&]() -> absl::StatusOr<std::shared_ptr<CompiledGrammar>> {
    return std::shared_ptr<CompiledGrammar>(new CompiledGrammar(std::move(grammar), options));
  });
}

void CompiledGrammar::LimitMemory(Place* place) {
  if (automaton_.bytes() <= state_bytes()) return;
  Automaton::Config* const config = &place->config;
  automaton_.Compact({&config, 1});
  place->epoch = automaton_.epoch();
}

absl::Status CompiledGrammar::Find(absl::string_view text, Place* place) {
  if (broken_) {
    automaton_.Clear();
    broken_ = false;
  }
  if (place->epoch == automaton_.epoch()) return absl::OkStatus();
  *place = {automaton_.epoch(), automaton_.Start()};
  return Read(text, place);
}

absl::Status CompiledGrammar::Read(absl::string_view bytes, Place* place) {
  for (const char c : bytes) {
    LimitMemory(place);
    const uint8_t byte_class = grammar_->class_of[static_cast<uint8_t>(c)];
    place->config = automaton_.Step(place->config, byte_class);
    if (place->config == Automaton::kDead) return absl::OkStatus();
    if (place->config == Automaton::kTooMany) return TooAmbiguous();
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const TokenBits>> CompiledGrammar::AllowedAt(Place* place) {
  LimitMemory(place);
  auto allowed = masks_->Of(&place->config);
  place->epoch = automaton_.epoch();
  return allowed;
}

std::optional<uint8_t> CompiledGrammar::OnlyByte(Automaton::Config config) {
  if (automaton_.CanEnd(config)) return std::nullopt;
  std::optional<uint8_t> only;
  for (size_t i = 0; i < grammar_->representatives.size(); ++i) {
    if (automaton_.Step(config, static_cast<uint8_t>(i)) == Automaton::kDead) continue;
    if (only.has_value() || grammar_->class_sizes[i] > 1) return std::nullopt;
    only = grammar_->representatives[i];
  }
  return only;
}

}  // namespace inlay
