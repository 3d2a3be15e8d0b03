// A JSON schema as a document: its places, and what $ref points at.
#ifndef INLAY_GEMMA_LIKE_GRAMMAR_SCHEMA_DOCUMENT_H_
#define INLAY_GEMMA_LIKE_GRAMMAR_SCHEMA_DOCUMENT_H_

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/numeric/int128.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "io/json/parse_json.h"

namespace inlay {

// Nodes are addresses of values inside of the document, which neither moves nor changes.
class SchemaDocument {
 public:
  // InvalidArgument for what is not JSON.
  static absl::StatusOr<SchemaDocument> Parse(absl::string_view text);

  const Json* root() const { return &**root_; }

  // The member of an object, or null. Takes constant time.
  const Json* Find(const Json& object, absl::string_view name) const;

  // Where a node is: # or #/properties/a. Cut off behind some hundred bytes.
  std::string PointerTo(const Json* node) const;

  // The node that the value of a $ref means; InvalidArgument if it is not in the document.
  absl::StatusOr<const Json*> Resolve(const Json& ref) const;

  // "#/a has a maxLength that must be a whole number": an error about `node`.
  absl::Status Error(const Json* node, absl::string_view what) const;

 private:
  struct Place {
    const Json* parent;
    const std::string* name;  // in an object
    size_t index;             // in a list
  };
  using Members = std::map<absl::string_view, const Json*>;

  void AddPlaces();
  void AddChild(const Json& child, const Place& place, std::vector<const Json*>* work);
  absl::StatusOr<const Json*> Follow(absl::string_view pointer, const Json& ref) const;

  std::unique_ptr<const JsonDocument> root_;
  std::map<const Json*, Place> places_;
  std::map<const Json*, Members> members_;  // of large objects
  std::map<std::string, const Json*> anchors_;
};

// Two values are equal as JSON schema has it if and only if their texts are the same: members are
// in the order of their names and numbers in one spelling.
std::string CanonicalJson(const Json& value);

// The integer that is written without point and exponent and has at most 64 bits; none for others.
std::optional<absl::int128> IntegerOf(const Json& value);

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_GRAMMAR_SCHEMA_DOCUMENT_H_
