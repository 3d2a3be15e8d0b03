// What determines the bytes of a service's answers.
#ifndef INLAY_SERVE_SERVICE_FINGERPRINTS_H_
#define INLAY_SERVE_SERVICE_FINGERPRINTS_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "gemma_like/chat/chat_renderer.h"
#include "gemma_like/load_model.h"
#include "serve/service/service_options.h"

namespace inlay::serve {

struct Fingerprints {
  std::string engine;  // MakeFingerprint: of answers to prompts that are tokens, as logs have them
  // "ENGINE/TEXT/CONTEXT": of answers to requests. TEXT is a hash of what makes a request tokens
  // and tokens a reply (the tokenizer, the chat template, the treatment of billing lines, what is
  // used where requests leave it out), CONTEXT the longest conversation in tokens, where an answer
  // without a limit of its own ends.
  std::string service;
};

Fingerprints MakeFingerprints(std::string engine, const LoadedModel& model,
                              const absl::StatusOr<ChatRenderer>& renderer,
                              const ServiceOptions& options, size_t context);

}  // namespace inlay::serve

#endif  // INLAY_SERVE_SERVICE_FINGERPRINTS_H_
