// Answers eight prompts at once, a few tokens of each in turn: schedule [MODEL]
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "inlay/inlay.h"

constexpr size_t kBudget = 24;  // tokens of a batch
constexpr size_t kSlice = 8;    // of one prompt, so that no prompt stalls the others

struct Answer {
  std::unique_ptr<inlay::KVCache> cache;
  std::unique_ptr<inlay::Generation> generation;
  inlay::Generation::Step step;  // of the batch at hand
};

absl::Status Run(const std::string& path) {
  auto model = inlay::LoadModel(path, {.threads = 2});
  if (!model.ok()) return model.status();
  inlay::Engine& engine = *model->engine;
  std::vector<Answer> answers(8);
  for (size_t i = 0; i < answers.size(); ++i) {
    auto cache = engine.CreateCache({.max_length = 512});
    auto prompt = model->tokenizer->Encode("ACT " + std::to_string(i + 1) + "\nROMEO:\nWhat light");
    if (!cache.ok() || !prompt.ok()) return cache.ok() ? prompt.status() : cache.status();
    answers[i].cache = *std::move(cache);
    auto generation = inlay::Generation::Begin(*model->tokenizer, *answers[i].cache, *prompt,
                                               {.sampling = {.seed = i}, .max_tokens = 20});
    if (!generation.ok()) return generation.status();
    answers[i].generation = *std::move(generation);
  }
  std::vector<float> logits;
  for (size_t batches = 0;; ++batches) {
    std::vector<Answer*> running;
    std::vector<inlay::SequenceStep> steps;
    size_t tokens = 0, rows = 0;
    // Who waited longest comes first.
    std::rotate(answers.begin(), answers.begin() + 1, answers.end());
    for (Answer& answer : answers) {
      if (answer.generation->done() || tokens == kBudget) continue;
      auto step = answer.generation->Next(std::min(kSlice, kBudget - tokens));
      if (!step.ok()) return step.status();
      answer.step = *step;
      running.push_back(&answer);
      steps.push_back({answer.cache.get(), step->tokens, step->logit_rows});
      tokens += step->tokens.size();
      rows += step->logit_rows;
    }
    if (steps.empty()) return std::printf("%zu batches\n", batches), absl::OkStatus();
    const size_t vocabulary = engine.info().vocab_size;
    logits.resize(rows * vocabulary);
    const inlay::FloatRows all(logits.data(), rows, vocabulary);
    if (auto status = engine.Forward(steps, all); !status.ok()) return status;
    size_t row = 0;
    for (Answer* a : running) {
      auto status = a->generation->Accept(all.Slice(row, a->step.logit_rows));
      if (!status.ok()) return status;
      row += a->step.logit_rows;
      if (a->generation->done()) std::printf("--- %s\n", a->generation->text().c_str());
    }
  }
}

int main(int argc, char** argv) {
  const absl::Status status = Run(argc > 1 ? argv[1] : DEMO_MODEL);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
