// The names under which states of prompts are found by other servers.
#ifndef INLAY_SERVE_PREFIXES_PREFIX_NAMES_H_
#define INLAY_SERVE_PREFIXES_PREFIX_NAMES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace inlay::serve {

// Names of states that one kind of server computes for one owner. The kind and the owner are hashed
// into the names, so that nobody finds states of others; tokens too, with 128 bits that are no
// proof: whoever gets a state compares its tokens.
class PrefixNames {
 public:
  // `fingerprint` tells the states of a server from those of others that have other bits. States
  // begin with `least` tokens or more, which name their root; the same for all servers.
  PrefixNames(absl::string_view fingerprint, absl::string_view owner, size_t least);

  // The root of states that begin as these tokens do: at least `least` of them.
  std::string Root(absl::Span<const int32_t> tokens) const;

  // The name of the state of the first lengths[i] tokens; the lengths ascend.
  std::vector<std::string> States(absl::Span<const int32_t> tokens,
                                  absl::Span<const size_t> lengths) const;

 private:
  std::string group_;
  size_t least_;
};

}  // namespace inlay::serve

#endif  // INLAY_SERVE_PREFIXES_PREFIX_NAMES_H_
