// What a file says of its licence.
#include "io/gguf/model_license.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <vector>

#include "io/gguf/gguf_writer.h"

namespace inlay {
namespace {

// What is read of a file with these keys.
ModelLicense Read(const std::function<void(GgufWriter&)>& add_keys) {
  const std::string path = testing::TempDir() + "/license-" + std::to_string(getpid()) + ".gguf";
  GgufWriter writer;
  add_keys(writer);
  EXPECT_TRUE(writer.Open(path).ok());
  EXPECT_TRUE(writer.Finish().ok());
  const auto file = GgufFile::Open(path);
  EXPECT_TRUE(file.ok()) << file.status();
  unlink(path.c_str());
  return file.ok() ? LicenseOf(*file) : ModelLicense();
}

TEST(ModelLicense, IsNotStatedByDefault) {
  const ModelLicense license = Read([](GgufWriter&) {});
  EXPECT_FALSE(license.stated());
  EXPECT_EQ(license.ToString(), "not stated in the file");
}

TEST(ModelLicense, HasAnIdANameAndALink) {
  const auto id = [](GgufWriter& writer) { writer.SetString("general.license", "apache-2.0"); };
  EXPECT_EQ(Read(id).ToString(), "apache-2.0");
  const ModelLicense other = Read([](GgufWriter& writer) {
    writer.SetString("general.license", "other");
    writer.SetString("general.license.name", "lfm1.0");
    writer.SetString("general.license.link", "https://example.org/LICENSE");
  });
  EXPECT_TRUE(other.stated());
  EXPECT_EQ(other.id, "other");
  EXPECT_EQ(other.name, "lfm1.0");
  EXPECT_EQ(other.link, "https://example.org/LICENSE");
  EXPECT_EQ(other.ToString(), "other: lfm1.0 (https://example.org/LICENSE)");
  const auto link = [](GgufWriter& writer) { writer.SetString("general.license.link", "LICENSE"); };
  EXPECT_EQ(Read(link).ToString(), "(LICENSE)");
}

TEST(ModelLicense, IsUntrusted) {
  const auto number = [](GgufWriter& writer) { writer.SetUint32("general.license", 2); };
  EXPECT_FALSE(Read(number).stated());
  const auto lines = [](GgufWriter& writer) { writer.SetString("general.license", "a\nb\x1b[2J"); };
  EXPECT_EQ(Read(lines).ToString(), "a\\nb\\u001b[2J");
  const auto list = [](GgufWriter& writer) {
    writer.SetStrings("general.license", std::vector<std::string>{"mit", "apache-2.0"});
  };
  EXPECT_EQ(Read(list).ToString(), "mit, apache-2.0");
}

}  // namespace
}  // namespace inlay
