#include "gemma_like/grammar/string_formats.h"

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace inlay {
namespace {

std::string AnyOf(const std::vector<std::string>& options) {
  return absl::StrCat("(", absl::StrJoin(options, "|"), ")");
}

// RFC 3339's full-date, with the days that each month has.
std::string Date() {
  const std::string leap =
      "([0-9]{2}(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)-02-29";
  const std::string usual =
      AnyOf({"(0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])", "(0[469]|11)-(0[1-9]|[12][0-9]|30)",
             "02-(0[1-9]|1[0-9]|2[0-8])"});
  return AnyOf({absl::StrCat("[0-9]{4}-", usual), leap});
}

// RFC 3339's full-time. More digits would let 59.999... round up to 60.
std::string Time() {
  const std::string hour = "([01][0-9]|2[0-3])", sixty = "[0-5][0-9]";
  return absl::StrCat(hour, ":", sixty, ":", sixty, "(\\.[0-9]{1,12})?([Zz]|[+-]", hour, ":", sixty,
                      ")");
}

// RFC 3339, appendix A: a unit may be followed by the next smaller one.
std::string Duration() {
  const std::string time = "T([0-9]+H([0-9]+M([0-9]+S)?)?|[0-9]+M([0-9]+S)?|[0-9]+S)";
  const std::string date = "([0-9]+Y([0-9]+M([0-9]+D)?)?|[0-9]+M([0-9]+D)?|[0-9]+D)";
  return absl::StrCat("P([0-9]+W|", date, "(", time, ")?|", time, ")");
}

std::string Ipv4() {
  const std::string byte = "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";
  return absl::StrCat("(", byte, "\\.){3}", byte);
}

// RFC 4291: eight groups, of which "::" may stand for any number. With `mixed` an IPv4 address may
// stand for the last two.
std::string Ipv6(bool mixed) {
  const std::string group = "[0-9A-Fa-f]{1,4}";
  std::vector<std::string> options = {absl::StrCat("(", group, ":){7}", group)};
  if (mixed) options.push_back(absl::StrCat("(", group, ":){6}", Ipv4()));
  for (int before = 0; before <= 7; ++before) {
    const std::string first = before == 0 ? ":" : absl::StrCat("(", group, ":){", before, "}");
    const auto groups = [&](int most) { return absl::StrCat("(:", group, "){0,", most, "}"); };
    options.push_back(first + ":");
    if (before < 7) options.push_back(absl::StrCat(first, "(:", group, "){1,", 7 - before, "}"));
    if (mixed && before <= 5) options.push_back(first + groups(5 - before) + ":" + Ipv4());
  }
  return AnyOf(options);
}

// Labels of RFC 1123 without "--" in their third place, where other kinds of labels are marked.
// Whole names have at most 253 characters: either few labels or short ones.
std::string Hostname() {
  const auto labels = [](int most, int size) {
    const std::string ends = "[0-9A-Za-z]", any = "[0-9A-Za-z-]";
    const std::string label =
        absl::StrCat(ends, "(", ends, "|", any, ends, "(", any, "{0,", size - 4, "}", ends, ")?|",
                     any, "-", ends, "(", any, "{0,", size - 5, "}", ends, ")?)?");
    return absl::StrCat(label, "(\\.", label, "){0,", most - 1, "}");
  };
  return AnyOf({labels(3, 63), labels(7, 31), labels(15, 15)});
}

// RFC 5321's mailboxes with a dot-string before the @ and at least two labels after it.
std::string Email() {
  const std::string atom = "[0-9A-Za-z!#$%&'*+/=?^_`{|}~-]+";
  const std::string label = "[0-9A-Za-z]([0-9A-Za-z-]*[0-9A-Za-z])?";
  return absl::StrCat(atom, "(\\.", atom, ")*@(", label, "\\.)+", label);
}

// RFC 3986, with an authority that has a host, or without authority and slash.
std::string Uri() {
  const std::string coded = "%[0-9A-Fa-f]{2}";
  const auto characters = [&](const char* more) {
    return absl::StrCat("([0-9A-Za-z._~!$&'()*+,;=", more, "-]|", coded, ")");
  };
  const std::string segment = characters(":@"), in_query = characters(":@/?");
  const std::string host =
      absl::StrCat("(", characters(""), "+|\\[", Ipv6(/*mixed=*/false), "\\])");
  const std::string authority =
      absl::StrCat("//(", characters(":"), "*@)?", host, "(:[0-9]+)?(/", segment, "*)*");
  const std::string rootless = absl::StrCat(segment, "+(/", segment, "*)*");
  return absl::StrCat("[A-Za-z][0-9A-Za-z+.-]*:", AnyOf({authority, rootless}), "(\\?", in_query,
                      "*)?(#", in_query, "*)?");
}

// With a version, also the variant of RFC 9562.
std::string Uuid(absl::string_view version = "") {
  const std::string digit = "[0-9A-Fa-f]";
  const std::string middle = version.empty() ? absl::StrCat("(-", digit, "{4}){3}")
                                             : absl::StrCat("-", digit, "{4}-", version, digit,
                                                            "{3}-[89ABab]", digit, "{3}");
  return absl::StrCat(digit, "{8}", middle, "-", digit, "{12}");
}

// `more` are the two digits beside letters and digits.
std::string Base64(absl::string_view more) {
  const std::string digit = absl::StrCat("[0-9A-Za-z", more, "]");
  return absl::StrCat("(", digit, "{4})*(", digit, "{2}==|", digit, "{3}=)?");
}

const char kJsonPointer[] = "(/([^/~]|~[01])*)*";

std::optional<std::string> Core(absl::string_view name) {
  if (name == "date") return Date();
  if (name == "time") return Time();
  if (name == "date-time") return Date() + "[Tt]" + Time();
  if (name == "duration") return Duration();
  if (name == "email") return Email();
  if (name == "hostname") return Hostname();
  if (name == "ipv4") return Ipv4();
  if (name == "ipv6") return Ipv6(/*mixed=*/true);
  if (name == "uri") return Uri();
  if (name == "uuid") return Uuid();
  for (const absl::string_view version : {"1", "3", "4", "5", "6", "7", "8"})
    if (name == absl::StrCat("uuid", version)) return Uuid(version);
  if (name == "byte" || name == "base64") return Base64("+/");
  if (name == "base64url") return Base64("_-");
  if (name == "json-pointer") return kJsonPointer;
  if (name == "relative-json-pointer") return absl::StrCat("(0|[1-9][0-9]*)(#|", kJsonPointer, ")");
  return std::nullopt;
}

}  // namespace

std::optional<std::string> StringFormat(absl::string_view name) {
  const std::optional<std::string> core = Core(name);
  if (!core) return std::nullopt;
  return absl::StrCat("^(", *core, ")$");
}

}  // namespace inlay
