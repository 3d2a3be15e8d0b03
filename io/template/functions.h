// What templates can call by name: filters, tests, the functions of strings, lists and dicts, and
// the global ones.
#ifndef INLAY_IO_TEMPLATE_FUNCTIONS_H_
#define INLAY_IO_TEMPLATE_FUNCTIONS_H_

#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "io/template/budget.h"
#include "io/template/value.h"

namespace inlay::jinja {

// What a function sees beside its arguments.
struct Context {
  Budget& budget;
  absl::Time now;
  absl::TimeZone time_zone;
  // All namespaces of a rendering: they may refer to each other in a circle.
  std::vector<std::unique_ptr<NamespaceRep>>& namespaces;
};

using Argument = std::pair<Text, Value>;  // a name and what it stands for

struct Arguments {
  Values positional;
  std::vector<Argument> named;
};

// `input` is what a filter or test is applied to, or the object of a method; undefined for global
// functions.
using FunctionPointer = absl::StatusOr<Value> (*)(Context& context, const Value& input,
                                                  const Arguments& arguments);

struct Function {
  absl::string_view name;
  FunctionPointer call;
};

// Null when there is none. Unimplemented for those of Jinja and Python that are left out.
absl::StatusOr<const Function*> FindFilter(absl::string_view name);
absl::StatusOr<const Function*> FindTest(absl::string_view name);
// Whether the sandbox hides this attribute of a dict, even where there is such a key.
bool HidesKey(absl::string_view name);
const Function* FindGlobal(absl::string_view name);
// The method of a value's type; null when it has none of this name or Jinja's sandbox hides it, as
// those that change a list.
absl::StatusOr<const Function*> FindMethod(const Value& object, absl::string_view name);

// object.name and object[key].
absl::StatusOr<Value> GetAttribute(Context& context, const Value& object, const std::string& name);
absl::StatusOr<Value> GetItem(Context& context, const Value& object, const Value& key);

// The arguments by parameter.
class BoundArguments {
 public:
  explicit BoundArguments(size_t parameters) : values_(parameters) {}

  // Whether the argument was given.
  bool has(size_t parameter) const { return values_[parameter].has_value(); }
  const Value& operator[](size_t parameter) const { return *values_[parameter]; }
  Value Or(size_t parameter, Value otherwise) const {
    return has(parameter) ? *values_[parameter] : otherwise;
  }
  // Given and true.
  bool IsTrue(size_t parameter) const;
  // A string argument, or the integer of an int; an error for other types.
  absl::StatusOr<Value> StringOr(size_t parameter, absl::string_view otherwise = "") const;
  absl::StatusOr<int64_t> IntegerOr(size_t parameter, int64_t otherwise) const;

 private:
  friend absl::StatusOr<BoundArguments> Bind(absl::string_view function,
                                             std::initializer_list<absl::string_view> parameters,
                                             size_t required, const Arguments& arguments);
  absl::InlinedVector<std::optional<Value>, 4> values_;
};

// Sorts arguments by the names of the parameters, of which the first `required` must be given.
absl::StatusOr<BoundArguments> Bind(absl::string_view function,
                                    std::initializer_list<absl::string_view> parameters,
                                    size_t required, const Arguments& arguments);

}  // namespace inlay::jinja

#endif  // INLAY_IO_TEMPLATE_FUNCTIONS_H_
