#include "io/json/parse_json.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/out_of_memory.h"
#include "base/printable.h"

namespace inlay {
namespace {

// Puts values together as nlohmann's parser finds their parts. Its own builder limits no depth, and
// takes quadratic time for the members of an ordered object. Wherever memory runs out, what was
// built until then ends without taking any: see base/out_of_memory.h.
class JsonBuilder : public nlohmann::json_sax<Json> {
 public:
  JsonBuilder(absl::string_view what, size_t most_values)
      : what_(what), most_values_(most_values) {}
  ~JsonBuilder() override {
    for (Container& container : open_) {
      for (auto& [name, value] : container.members) EmptyJson(value);
      for (Json& item : container.items) EmptyJson(item);
    }
  }

  absl::StatusOr<JsonDocument> Result(bool parsed) && {
    if (parsed) return std::move(result_);
    return absl::InvalidArgumentError(error_);
  }

  bool null() override { return Add(nullptr); }
  bool boolean(bool value) override { return Add(value); }
  bool number_integer(int64_t value) override { return Add(value); }
  bool number_unsigned(uint64_t value) override { return Add(value); }
  bool number_float(double value, const std::string& digits) override {
    (void)digits;
    return Add(value);
  }
  bool string(std::string& value) override { return Add(std::move(value)); }
  bool binary(Json::binary_t&) override { return Fail("has a binary value"); }
  bool start_object(size_t) override { return Open(true); }
  bool start_array(size_t) override { return Open(false); }
  bool key(std::string& name) override {
    Container& object = open_.back();
    const auto [place, is_new] = object.places.try_emplace(name, object.members.size());
    object.place = place->second;
    if (is_new) object.members.emplace_back(std::move(name), nullptr);
    return true;
  }
  bool end_object() override {
    std::vector<Member>& members = open_.back().members;
    JsonDocument object(Json::object());
    auto& all = object->get_ref<Json::object_t&>();
    all.reserve(members.size());
    // The map has its own search in the functions that insert; a vector's emplace_back has none.
    for (auto& [name, value] : members) all.emplace_back(std::move(name), std::move(value));
    open_.pop_back();
    return Put(*object);
  }
  bool end_array() override {
    JsonDocument list(Json::array());
    list->get_ref<Json::array_t&>().swap(open_.back().items);
    open_.pop_back();
    return Put(*list);
  }
  bool parse_error(size_t position, const std::string& token,
                   const nlohmann::json::exception& error) override {
    return Fail(JsonFault(position, token, error));
  }

 private:
  using Member = std::pair<std::string, Json>;  // moves as a vector grows, which object_t's do not
  struct Container {
    bool is_object;
    std::vector<Member> members;
    std::map<std::string, size_t> places;  // of members, by name
    size_t place = 0;                      // of the member that the next value is for
    Json::array_t items;
  };

  bool Fail(absl::string_view error) {
    error_ = absl::StrCat(what_, " ", error);
    return false;
  }

  bool Count() {
    if (++values_ <= most_values_) return true;
    return Fail(absl::StrCat("holds more than ", most_values_, " values"));
  }

  bool Open(bool is_object) {
    if (open_.size() == kMostJsonDepth)
      return Fail(absl::StrCat("nests deeper than ", kMostJsonDepth, " levels"));
    if (!Count()) return false;
    open_.push_back({is_object, {}, {}, 0, {}});
    return true;
  }

  bool Add(Json scalar) { return Count() && Put(scalar); }

  // Moves `value` to where it belongs.
  bool Put(Json& value) {
    if (open_.empty()) {
      *result_ = std::move(value);
    } else if (open_.back().is_object) {
      Json& member = open_.back().members[open_.back().place].second;
      EmptyJson(member);  // of a name that has come before
      member = std::move(value);
    } else {
      open_.back().items.push_back(std::move(value));
    }
    return true;
  }

  const absl::string_view what_;
  const size_t most_values_;
  size_t values_ = 0;
  std::vector<Container> open_;
  JsonDocument result_;
  std::string error_;
};

// Copies a value into one that is null. Where memory runs out, what was copied until then is all in
// `to`; a copy by nlohmann's constructor would end, and take memory for that.
void CopyJson(const Json& from, Json& to) {
  if (from.is_array()) {
    to = Json::array();
    auto& items = to.get_ref<Json::array_t&>();
    items.resize(from.size());
    for (size_t i = 0; i < items.size(); ++i) CopyJson(from[i], items[i]);
  } else if (from.is_object()) {
    to = Json::object();
    auto& members = to.get_ref<Json::object_t&>();
    members.reserve(from.size());
    for (const auto& [name, value] : from.get_ref<const Json::object_t&>())
      CopyJson(value, members.emplace_back(name, nullptr).second);
  } else {
    to = from;
  }
}

}  // namespace

absl::StatusOr<JsonDocument> ParseJson(absl::string_view what, absl::string_view text,
                                       size_t most_values) {
  return OrOutOfMemory("reading JSON", [&] {
    JsonBuilder builder(what, most_values);
    const bool parsed = Json::sax_parse(text.begin(), text.end(), &builder);
    return std::move(builder).Result(parsed);
  });
}

std::string JsonFault(size_t byte, const std::string& token,
                      const nlohmann::json::exception& error) {
  constexpr int kNumberOverflow = 406;
  if (error.id == kNumberOverflow) {
    return absl::StrCat("has the number ", QuoteForMessage(token),
                        ", which is beyond the range of a double");
  }
  return absl::StrCat("is not JSON in UTF-8 at byte ", byte);
}

// Delegates, so that the destructor empties a copy that fails.
JsonDocument::JsonDocument(const Json& json) : JsonDocument() { CopyJson(json, json_); }

void EmptyJson(Json& json) noexcept {
  // Bottom up: the destructor of an empty list or object takes no memory.
  if (auto* const list = json.get_ptr<Json::array_t*>(); list != nullptr) {
    for (Json& item : *list) EmptyJson(item);
    list->clear();
  } else if (auto* const object = json.get_ptr<Json::object_t*>(); object != nullptr) {
    for (auto& [name, value] : *object) EmptyJson(value);
    object->clear();
  }
  json = nullptr;
}

const Json& JsonMember(const Json& json, const char* name) {
  static const Json null;
  if (!json.is_object()) return null;
  const auto found = json.find(name);
  return found == json.end() ? null : *found;
}

std::string JsonString(const Json& json) {
  return json.is_string() ? json.get<std::string>() : std::string();
}

std::string DumpJson(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string DumpJson(Json&& json) {
  const JsonDocument document(std::move(json));
  return DumpJson(*document);
}

}  // namespace inlay
