// Finds, among sequences of tokens, the one that shares the longest prefix with a text.
#ifndef INLAY_GEMMA_LIKE_GENERATION_PREFIX_INDEX_H_
#define INLAY_GEMMA_LIKE_GENERATION_PREFIX_INDEX_H_

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "base/out_of_memory.h"

namespace inlay {

// A radix tree (Morrison 1968, "PATRICIA") of sequences, each with a value and a floor: it serves a
// text with which it shares a prefix of at least `floor` tokens. The time of Find() depends on the
// length of the text, not on the number of sequences.
template <class Value>
class PrefixIndex {
 public:
  struct Match {
    Value value;
    size_t length;  // tokens of the shared prefix
  };

  // A sequence that is already stored gets the new value and floor; its previous value is returned.
  // Nothing has changed if memory runs out (std::bad_alloc).
  Value Insert(absl::Span<const int32_t> tokens, size_t floor, Value value) {
    assert(floor <= tokens.size() && value != Value());
    auto [node, at, matched] = Descend(tokens);
    // Allocated before the tree changes.
    Children added;
    if (at < tokens.size()) {
      auto leaf = std::make_unique<Node>();
      leaf->edge.assign(tokens.begin() + static_cast<ptrdiff_t>(at), tokens.end());
      added.emplace(tokens[at], std::move(leaf));
    }
    if (matched < node->edge.size()) node = Split(*node, matched);
    if (!added.empty()) {
      Node* leaf = added.begin()->second.get();
      leaf->parent = node;
      node->children.merge(added);
      node = leaf;
    }
    const Value before = std::exchange(node->value, value);
    node->floor = floor;
    UpdateLowest(node);
    return before;
  }

  // Removes a sequence, which must be stored.
  void Erase(absl::Span<const int32_t> tokens) {
    auto [node, at, matched] = Descend(tokens);
    assert(at == tokens.size() && matched == node->edge.size() && node->value != Value());
    node->value = Value();
    node->floor = kNone;
    // A node without a value is removed if it has no children, and joined with its child if it has
    // one. The parent may be left without both, as one that was not joined for lack of memory.
    while (node->parent != nullptr && node->value == Value() && node->children.empty()) {
      Node* parent = node->parent;
      parent->children.erase(parent->children.find(node->edge.front()));
      node = parent;
    }
    if (node->parent != nullptr && node->value == Value() && node->children.size() == 1) {
      node = Join(*node);
    }
    UpdateLowest(node);
  }

  // The longest sequence for which accept(value, floor) holds among those that are shorter than
  // `tokens`, which begin with it; Value() where there is none.
  template <class Accept>
  Value Beginning(absl::Span<const int32_t> tokens, const Accept& accept) const {
    const auto [end, at, matched] = Descend(tokens);
    const bool is_whole = matched == end->edge.size() && at < tokens.size();
    for (const Node* node = is_whole ? end : end->parent; node != nullptr; node = node->parent) {
      if (node->value != Value() && accept(node->value, node->floor)) return node->value;
    }
    return Value();
  }

  // How many tokens the longest prefix has that `tokens` share with any sequence, whether that
  // serves them or not.
  size_t Shared(absl::Span<const int32_t> tokens) const { return Descend(tokens).at; }

  // A sequence with Shared(tokens) tokens in common that goes on with others, or beyond all of
  // them; Value() where none does.
  Value Beyond(absl::Span<const int32_t> tokens) const {
    const auto [node, at, matched] = Descend(tokens);
    const Node* below = node;
    if (matched == node->edge.size()) {
      if (node->children.empty()) return Value();
      below = node->children.begin()->second.get();
    }
    while (below->value == Value()) below = below->children.begin()->second.get();
    return below->value;
  }

  // The sequence that shares the longest prefix with `tokens` among those that serve it; a length
  // of 0 when there is none.
  Match Find(absl::Span<const int32_t> tokens) const {
    auto [node, at, matched] = Descend(tokens);
    size_t common = at;
    // All sequences below a node share its tokens; those that share more were tried before.
    while (node->lowest > common) {
      if (node->parent == nullptr) return {Value(), 0};
      common -= matched;
      node = node->parent;
      matched = node->edge.size();
    }
    while (node->floor != node->lowest) {
      // clang 14 has no captures of structured bindings.
      const auto below = std::find_if(
          node->children.begin(), node->children.end(),
          [lowest = node->lowest](const auto& child) { return child.second->lowest == lowest; });
      node = below->second.get();
    }
    return {node->value, common};
  }

 private:
  static constexpr size_t kNone = std::numeric_limits<size_t>::max();

  struct Node;
  using Children = std::map<int32_t, std::unique_ptr<Node>>;  // by their edges' first tokens
  struct Node {
    std::vector<int32_t> edge;  // the tokens from the parent's sequence to this one's
    Node* parent = nullptr;
    Children children;
    Value value = Value();  // none where no sequence ends
    size_t floor = kNone;
    size_t lowest = kNone;  // the smallest floor here and below
  };

  // The node in whose edge the tokens diverge from the tree, or end: the tree has their first `at`
  // tokens, the last `matched` of these in that edge.
  struct Place {
    Node* node;
    size_t at, matched;
  };
  Place Descend(absl::Span<const int32_t> tokens) const {
    Node* node = &root_;
    size_t at = 0, matched = 0;
    while (matched == node->edge.size() && at < tokens.size()) {
      const auto child = node->children.find(tokens[at]);
      if (child == node->children.end()) break;
      node = child->second.get();
      matched = 0;
      while (matched < node->edge.size() && at < tokens.size() && node->edge[matched] == tokens[at])
        ++matched, ++at;
    }
    return {node, at, matched};
  }

  // Inserts a parent that ends after the first `count` tokens of the node's edge, and returns it.
  Node* Split(Node& node, size_t count) {
    auto upper = std::make_unique<Node>();
    upper->edge.assign(node.edge.begin(), node.edge.begin() + static_cast<ptrdiff_t>(count));
    std::vector<int32_t> rest(node.edge.begin() + static_cast<ptrdiff_t>(count), node.edge.end());
    upper->parent = node.parent;
    upper->lowest = node.lowest;
    // Allocated before the node moves there, so that nothing has changed if memory runs out.
    auto& below = upper->children[rest.front()];
    auto& place = node.parent->children.find(node.edge.front())->second;
    below = std::exchange(place, nullptr);
    node.edge = std::move(rest);
    node.parent = upper.get();
    Node* made = upper.get();
    place = std::move(upper);
    return made;
  }

  // The opposite of Split; returns the child, which replaces the node. Without memory for that both
  // stay, which is also correct.
  static Node* Join(Node& node) {
    std::unique_ptr<Node>& child = node.children.begin()->second;
    const absl::Status joined = OrOutOfMemory("an index", [&] {
      node.edge.insert(node.edge.end(), child->edge.begin(), child->edge.end());
      return absl::OkStatus();
    });
    if (!joined.ok()) return &node;
    child->edge = std::move(node.edge);
    child->parent = node.parent;
    std::unique_ptr<Node>& place = node.parent->children.find(child->edge.front())->second;
    const std::unique_ptr<Node> gone = std::exchange(place, std::move(child));
    return place.get();
  }

  static void UpdateLowest(Node* node) {
    for (; node != nullptr; node = node->parent) {
      node->lowest = node->floor;
      for (const auto& [token, child] : node->children) {
        node->lowest = std::min(node->lowest, child->lowest);
      }
    }
  }

  mutable Node root_;
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_GENERATION_PREFIX_INDEX_H_
