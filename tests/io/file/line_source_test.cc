// Lines of texts that come in pieces of any size.
#include "io/file/line_source.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "io/file/open_file.h"
#include "tests/io/file/folder_test.h"
#include "tests/must.h"

namespace inlay {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// "NUMBER@OFFSET:TEXT", with "$" at the end of a line that a newline ends.
std::vector<std::string> Lines(LineSource& source) {
  std::vector<std::string> lines;
  while (const std::optional<LineSource::Line> line = Must(source.Next())) {
    lines.push_back(
        absl::StrCat(source.number(), "@", line->offset, ":", line->text, line->ended ? "$" : ""));
  }
  return lines;
}

// The text in pieces of `size` bytes.
LineSource::NextPiece PiecesOf(absl::string_view text, size_t size) {
  return [text, size]() mutable -> absl::StatusOr<absl::string_view> {
    const absl::string_view piece = text.substr(0, size);
    text.remove_prefix(piece.size());
    return piece;
  };
}

TEST(LineSourceTest, LinesDoNotDependOnPieces) {
  constexpr absl::string_view kText = "one\n\ntwo words\nlast";
  for (size_t size = 1; size <= kText.size() + 1; ++size) {
    LineSource source(PiecesOf(kText, size), "a text", /*most=*/9);
    EXPECT_THAT(Lines(source), ElementsAre("1@0:one$", "2@4:$", "3@5:two words$", "4@15:last"));
    EXPECT_EQ(Must(source.Next()).has_value(), false) << "the end stays the end";
  }
  LineSource none(PiecesOf("", 1), "a text", 9);
  EXPECT_THAT(Lines(none), ElementsAre());
}

TEST(LineSourceTest, ALineThatIsTooLongIsNamed) {
  for (const absl::string_view text : {"one\ntwo words\n", "one\ntwo words"}) {
    LineSource source(PiecesOf(text, 2), "a text", /*most=*/8);
    EXPECT_TRUE(Must(source.Next()).has_value());
    EXPECT_THAT(source.Next().status().message(),
                HasSubstr("a text:2: the line has more than 8 bytes"));
  }
}

TEST(LineSourceTest, TellsTheErrorOfWhatItReads) {
  LineSource source([] { return absl::DataLossError("the tape is torn"); }, "a tape", 8);
  EXPECT_EQ(source.Next().status().message(), "the tape is torn");
}

class LineSourceFileTest : public FolderTest<> {};

TEST_F(LineSourceFileTest, ReadsAFileFromItsBeginning) {
  const std::string long_line(1'000'000, 'x');
  const OpenFile file =
      Must(OpenFile::Open(Make("a", absl::StrCat("one\n", long_line, "\ntwo")), O_RDONLY));
  LineSource source(file.fd(), Path("a"), LineSource::kAnyLength);
  EXPECT_THAT(Lines(source),
              ElementsAre("1@0:one$", absl::StrCat("2@4:", long_line, "$"), "3@1000005:two"));
}

}  // namespace
}  // namespace inlay
