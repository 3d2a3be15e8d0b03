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

namespace inlay {
namespace {

// Puts values together as nlohmann's parser finds their parts. Its own builder limits no depth, and
// takes quadratic time for the members of an ordered object.
class JsonBuilder : public nlohmann::json_sax<Json> {
 public:
  explicit JsonBuilder(absl::string_view what) : what_(what) {}

  absl::StatusOr<Json> Result(bool parsed) && {
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
    // The map has its own search in the functions that insert; a vector's emplace_back has none.
    if (is_new) object.members.emplace_back(std::move(name), nullptr);
    return true;
  }
  bool end_object() override {
    Json object = std::move(open_.back().members);
    open_.pop_back();
    return Add(std::move(object));
  }
  bool end_array() override {
    Json list = std::move(open_.back().items);
    open_.pop_back();
    return Add(std::move(list));
  }
  bool parse_error(size_t position, const std::string& token,
                   const nlohmann::json::exception&) override {
    (void)token;
    return Fail(absl::StrCat("is not JSON in UTF-8 at byte ", position));
  }

 private:
  struct Container {
    bool is_object;
    Json::object_t members;
    std::map<std::string, size_t> places;  // of members, by name
    size_t place = 0;                      // of the member that the next value is for
    Json::array_t items;
  };

  bool Fail(absl::string_view error) {
    error_ = absl::StrCat(what_, " ", error);
    return false;
  }

  bool Open(bool is_object) {
    if (open_.size() == kMostJsonDepth)
      return Fail(absl::StrCat("nests deeper than ", kMostJsonDepth, " levels"));
    open_.push_back({is_object, {}, {}, 0, {}});
    return true;
  }

  bool Add(Json value) {
    if (open_.empty()) {
      result_ = std::move(value);
    } else if (open_.back().is_object) {
      const auto place = static_cast<ptrdiff_t>(open_.back().place);
      open_.back().members.begin()[place].second = std::move(value);
    } else {
      open_.back().items.push_back(std::move(value));
    }
    return true;
  }

  const absl::string_view what_;
  std::vector<Container> open_;
  Json result_;
  std::string error_;
};

}  // namespace

absl::StatusOr<Json> ParseJson(absl::string_view what, absl::string_view text) {
  return OrOutOfMemory("reading JSON", [&] {
    JsonBuilder builder(what);
    const bool parsed = Json::sax_parse(text.begin(), text.end(), &builder);
    return std::move(builder).Result(parsed);
  });
}

std::string DumpJson(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace inlay
