#include "io/template/json_input.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/out_of_memory.h"
#include "io/json/parse_json.h"
#include "io/template/limits.h"
#include "nlohmann/json.hpp"

namespace inlay::jinja {
namespace {

// Puts values together as nlohmann's parser finds their parts.
class Builder : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Builder(Origin origin) : origin_(origin) {}

  absl::StatusOr<Value> Result(bool parsed) && {
    if (parsed) return std::move(result_);
    return absl::InvalidArgumentError(error_.empty() ? "this is not JSON" : error_);
  }

  bool null() override { return Add(Value::None()); }
  bool boolean(bool value) override { return Add(Value::Bool(value)); }
  bool number_integer(int64_t value) override { return Add(Value::Int(value)); }
  bool number_unsigned(uint64_t value) override {
    if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
      return Add(Value::BigInt(absl::StrCat(value)));
    return Add(Value::Int(static_cast<int64_t>(value)));
  }
  bool number_float(double value, const std::string& digits) override {
    // An integer that does not fit comes as a float.
    if (digits.find_first_of(".eE") == std::string::npos) return Add(Value::BigInt(digits));
    return Add(Value::Float(value));
  }
  bool string(std::string& value) override {
    return Add(Value::String(Text(std::move(value), origin_)));
  }
  bool binary(nlohmann::json::binary_t&) override { return Fail("JSON has no binary values"); }
  bool start_object(size_t) override { return Open(std::make_shared<DictRep>()); }
  bool start_array(size_t) override { return Open(nullptr); }
  bool key(std::string& name) override {
    open_.back().key = Value::String(Text(std::move(name), origin_));
    return true;
  }
  bool end_object() override {
    const std::shared_ptr<DictRep> dict = std::move(open_.back().dict);
    open_.pop_back();
    dict->Finish(nullptr);
    return Add(Value::Dict(dict));
  }
  bool end_array() override {
    Values items = std::move(open_.back().items);
    open_.pop_back();
    return Add(Value::List(std::move(items)));
  }
  bool parse_error(size_t position, const std::string& token,
                   const nlohmann::json::exception& error) override {
    return Fail(absl::StrCat("this ", JsonFault(position, token, error)));
  }

  // What the parser would do for the value's text.
  bool Read(const Json& json) {
    switch (json.type()) {
      case Json::value_t::boolean:
        return boolean(json.get<bool>());
      case Json::value_t::number_integer:
        return number_integer(json.get<int64_t>());
      case Json::value_t::number_unsigned:
        return number_unsigned(json.get<uint64_t>());
      case Json::value_t::number_float:
        return Add(Value::Float(json.get<double>()));
      case Json::value_t::string:
        return Add(Value::String(json.get_ref<const std::string&>(), origin_));
      case Json::value_t::array:
        return ReadList(json);
      case Json::value_t::object:
        return ReadObject(json);
      default:
        return null();
    }
  }

 private:
  struct Container {
    std::shared_ptr<DictRep> dict;  // null for a list
    Value key;                      // of the next value
    Values items;
  };

  bool ReadList(const Json& json) {
    return start_array(json.size()) &&
           std::all_of(json.begin(), json.end(), [&](const Json& item) { return Read(item); }) &&
           end_array();
  }

  bool ReadObject(const Json& json) {
    if (!start_object(json.size())) return false;
    for (const auto& [name, value] : json.get_ref<const Json::object_t&>()) {
      open_.back().key = Value::String(name, origin_);
      if (!Read(value)) return false;
    }
    return end_object();
  }

  bool Fail(std::string error) {
    error_ = std::move(error);
    return false;
  }

  bool Open(std::shared_ptr<DictRep> dict) {
    if (open_.size() >= static_cast<size_t>(kMaxValueDepth))
      return Fail(absl::StrCat("JSON nests deeper than ", kMaxValueDepth, " levels"));
    open_.push_back({std::move(dict), Value(), {}});
    return true;
  }

  bool Add(Value value) {
    if (open_.empty()) {
      result_ = std::move(value);
    } else if (open_.back().dict != nullptr) {
      open_.back().dict->Set(std::move(open_.back().key), std::move(value));
    } else {
      open_.back().items.push_back(std::move(value));
    }
    return true;
  }

  const Origin origin_;
  std::vector<Container> open_;
  Value result_;
  std::string error_;
};

}  // namespace

absl::StatusOr<Value> ParseJson(absl::string_view json, Origin origin) {
  return OrOutOfMemory("reading JSON", [&] {
    Builder builder(origin);
    const bool parsed = nlohmann::json::sax_parse(json.begin(), json.end(), &builder);
    return std::move(builder).Result(parsed);
  });
}

absl::StatusOr<Value> FromJson(const Json& json, Origin origin) {
  return OrOutOfMemory("reading JSON", [&] {
    Builder builder(origin);
    const bool is_read = builder.Read(json);
    return std::move(builder).Result(is_read);
  });
}

}  // namespace inlay::jinja
