#include "io/template/functions.h"

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "io/template/loop.h"
#include "io/template/operators.h"
#include "io/template/scope.h"

namespace inlay::jinja {

bool BoundArguments::IsTrue(size_t parameter) const {
  return has(parameter) && jinja::IsTrue(*values_[parameter]);
}

absl::StatusOr<Value> BoundArguments::StringOr(size_t parameter,
                                               absl::string_view otherwise) const {
  if (!has(parameter)) return Value::String(otherwise, Origin::kTemplate);
  const Value& value = *values_[parameter];
  if (!value.is(Type::kString))
    return absl::InvalidArgumentError(
        absl::StrCat("an argument must be a string, not a value of the type ", TypeName(value)));
  return value;
}

absl::StatusOr<int64_t> BoundArguments::IntegerOr(size_t parameter, int64_t otherwise) const {
  if (!has(parameter)) return otherwise;
  const std::optional<int64_t> integer = AsInteger(*values_[parameter]);
  if (!integer.has_value())
    return absl::InvalidArgumentError(absl::StrCat(
        "an argument must be an integer, not a value of the type ", TypeName(*values_[parameter])));
  return *integer;
}

absl::StatusOr<BoundArguments> Bind(absl::string_view function,
                                    std::initializer_list<absl::string_view> parameters,
                                    size_t required, const Arguments& arguments) {
  if (arguments.positional.size() > parameters.size())
    return absl::InvalidArgumentError(absl::StrCat(function, " takes at most ", parameters.size(),
                                                   " arguments, not ",
                                                   arguments.positional.size()));
  BoundArguments bound(parameters.size());
  for (size_t i = 0; i < arguments.positional.size(); ++i)
    bound.values_[i] = arguments.positional[i];
  for (const auto& [name, value] : arguments.named) {
    size_t at = 0;
    while (at < parameters.size() && parameters.begin()[at] != name.bytes()) ++at;
    if (at == parameters.size() || bound.values_[at].has_value())
      return absl::InvalidArgumentError(absl::StrCat(function, " takes no ",
                                                     at == parameters.size() ? "" : "second ",
                                                     "argument ", QuoteForMessage(name.bytes())));
    bound.values_[at] = value;
  }
  for (size_t i = 0; i < required; ++i) {
    if (!bound.values_[i].has_value())
      return absl::InvalidArgumentError(
          absl::StrCat(function, " lacks the argument ", parameters.begin()[i]));
  }
  return bound;
}

namespace {

Value MacroAttribute(Context& context, const MacroRep& macro, const std::string& name) {
  if (name == "name")
    return Value::String(macro.definition->name, Origin::kTemplate, &context.budget);
  return Value::UndefinedNamed(&name);
}

absl::StatusOr<Value> MethodOf(Context& context, const Value& object, const std::string& name) {
  INLAY_ASSIGN_OR_RETURN(const Function* method, FindMethod(object, name));
  if (method == nullptr) return Value();
  return Value::Method(object, method, &context.budget);
}

}  // namespace

absl::StatusOr<Value> GetAttribute(Context& context, const Value& object, const std::string& name) {
  INLAY_RETURN_IF_ERROR(context.budget.StepBytes(name.size()));
  switch (object.type()) {
    case Type::kUndefined:
      return UndefinedError(object);
    case Type::kNamespace: {
      const Value* value = object.name_space()->Find(name);
      return value == nullptr ? Value::UndefinedNamed(&name) : *value;
    }
    case Type::kSequence:
      if (object.sequence()->kind == SequenceKind::kGroup && name == "grouper")
        return object.sequence()->items[0];
      if (object.sequence()->kind == SequenceKind::kGroup && name == "list")
        return object.sequence()->items[1];
      break;
    case Type::kMacro:
      return MacroAttribute(context, object.macro(), name);
    case Type::kLoop:
      if (name != "cycle" && name != "changed") return object.loop().Attribute(name);
      break;
    default:
      break;
  }
  INLAY_ASSIGN_OR_RETURN(const Value method, MethodOf(context, object, name));
  if (method.is(Type::kMethod)) return method;
  if (object.is(Type::kDict)) {
    // Jinja's sandbox hides what would change a dict, even where a key has that name.
    if (!HidesKey(name)) {
      const Value* value = object.dict().Find(name);
      if (value != nullptr) return *value;
    }
  }
  return Value::UndefinedNamed(&name);
}

absl::StatusOr<Value> GetItem(Context& context, const Value& object, const Value& key) {
  INLAY_RETURN_IF_ERROR(context.budget.Step());
  if (object.is(Type::kUndefined)) return UndefinedError(object);
  if (key.is(Type::kString) || object.is(Type::kDict))
    INLAY_RETURN_IF_ERROR(CountKey(context.budget, key));
  if (object.is(Type::kDict) && IsHashable(key)) {
    const Value* value = object.dict().Find(key);
    if (value != nullptr) return *value;
  }
  if (key.is(Type::kString)) {
    const std::string name(key.bytes());
    Value value;
    if (object.is(Type::kDict)) {
      INLAY_ASSIGN_OR_RETURN(value, MethodOf(context, object, name));
    } else {
      INLAY_ASSIGN_OR_RETURN(value, GetAttribute(context, object, name));
    }
    return value.is(Type::kUndefined) ? Value() : value;  // the name does not outlive this
  }
  const std::optional<int64_t> index = AsInteger(key);
  const bool indexed =
      object.is(Type::kSequence) && object.sequence()->kind <= SequenceKind::kRange;
  if (!index.has_value() || !(indexed || object.is(Type::kString))) return Value();
  INLAY_ASSIGN_OR_RETURN(const int64_t length, Length(context.budget, object));
  const int64_t at = *index < 0 ? *index + length : *index;
  if (at < 0 || at >= length) return Value();
  if (indexed) return object.sequence()->items[static_cast<size_t>(at)];
  return Slice(context.budget, object, Value::Int(at), Value::Int(at + 1), Value::None());
}

}  // namespace inlay::jinja
