// The progress bar, and the commands that show it on a terminal.
#include "tools/progress.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/io/gguf/gguf_bytes.h"
#include "tests/tools/program.h"

namespace inlay {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(ProgressLine, SaysHowMuchHowFastAndHowLong) {
  constexpr auto kBytes = ProgressUnit::kBytes, kTokens = ProgressUnit::kTokens;
  EXPECT_EQ(ProgressLine("loading a.gguf", 3'000'000'000, 12'000'000'000, kBytes, 2, 100),
            "loading a.gguf [######------------------]  25 %, 1.5 GB/s, 6 s left");
  EXPECT_EQ(ProgressLine("a", 20, 100, kTokens, 4, 100),
            "a [####--------------------]  20 %, 5.0 tokens/s, 16 s left");
  EXPECT_EQ(ProgressLine("a", 2'000'000, 1'000'000'000, kBytes, 2, 100),
            "a [------------------------]   0 %, 1 MB/s, 16:38 min left");
  EXPECT_EQ(ProgressLine("a", 0, 10, kBytes, 1, 100), "a [------------------------]   0 %");
  EXPECT_EQ(ProgressLine("a", 20, 10, kTokens, 1, 100),
            "a [########################] 100 %, 10 tokens/s");
  EXPECT_EQ(ProgressLine("a", 20, 0, kTokens, 1, 100), "a 20 tokens/s");
  EXPECT_EQ(ProgressLine("a", 30, 100, kTokens, 4, 100, /*before=*/10),
            "a [#######-----------------]  30 %, 5.0 tokens/s, 14 s left");
  EXPECT_EQ(ProgressLine("a", 5, 100, kTokens, 4, 100, /*before=*/10),
            "a [#-----------------------]   5 %")
      << "it has started over";
  EXPECT_EQ(ProgressLine("a", 5, 20, ProgressUnit::kRequests, 2.5, 100),
            "a [######------------------]  25 %, 2.0 requests/s, 8 s left");
}

// The bar goes first, then the figures, then the end of the name; a character counts as one column
// or two.
TEST(ProgressLine, FitsTheWidth) {
  const auto line = [](size_t width) {
    return ProgressLine("t\u00e9st", 50, 100, ProgressUnit::kTokens, 10, width);
  };
  EXPECT_EQ(line(62), "t\u00e9st [############------------]  50 %, 5.0 tokens/s, 10 s left");
  EXPECT_EQ(line(40), "t\u00e9st  50 %, 5.0 tokens/s, 10 s left");
  EXPECT_EQ(line(20), "t\u00e9st  50 %");
  EXPECT_EQ(line(6), "t\u00e9st  ");
  EXPECT_EQ(line(2), "t\u00e9");
  const auto wide = [](size_t width) {
    return ProgressLine("\u6a21\U0001F600", 50, 100, ProgressUnit::kTokens, 10, width);
  };
  EXPECT_EQ(wide(62), "\u6a21\U0001F600 [############------------]  50 %, 5.0 tokens/s, 10 s left");
  EXPECT_EQ(wide(58), "\u6a21\U0001F600  50 %, 5.0 tokens/s, 10 s left");
  EXPECT_EQ(wide(4), "\u6a21\U0001F600");
  EXPECT_EQ(wide(3), "\u6a21");
}

// A terminal whose other end is read here.
class Pty : public testing::Test {
 protected:
  Pty() {
    const winsize size = {.ws_row = 24, .ws_col = 50, .ws_xpixel = 0, .ws_ypixel = 0};
    EXPECT_EQ(openpty(&shown_, &terminal_, nullptr, nullptr, &size), 0);
  }
  ~Pty() override {
    close(shown_);
    close(terminal_);
  }

  std::string Shown() {
    std::string text;
    char buffer[4096];
    for (pollfd wait = {.fd = shown_, .events = POLLIN, .revents = 0}; poll(&wait, 1, 0) == 1;)
      text.append(buffer, static_cast<size_t>(read(shown_, buffer, sizeof(buffer))));
    return text;
  }

  int shown_ = -1, terminal_ = -1;
  double now_ = 100;
};

TEST_F(Pty, ShowsLinesAtTheirTimeAndClearsThem) {
  {
    ProgressBar bar("work", 1000, ProgressUnit::kTokens, terminal_, [this] { return now_; });
    bar.Update(100);
    now_ += 0.29;
    bar.Update(200);
    EXPECT_EQ(Shown(), "") << "within 0.3 s";
    now_ += 0.21;
    bar.Update(250);
    EXPECT_EQ(Shown(), "\rwork  25 %, 500 tokens/s, 2 s left");  // 50 columns have no bar
    now_ += 0.05;
    bar.Update(300);
    EXPECT_EQ(Shown(), "") << "within 0.1 s of the last";
    now_ += 0.45;
    bar.Update(1000);
    const std::string whole = "\rwork 100 %, 1000 tokens/s";
    EXPECT_EQ(Shown(), whole + std::string(9, ' ')) << "what was longer is overwritten";
    bar.Rename("new\x1b[31m");
    now_ += 1;
    bar.Update(1000);
    EXPECT_EQ(Shown(), "\rnew\\u001b[31m 100 %, 500 tokens/s");
  }
  EXPECT_EQ(Shown(), "\r" + std::string(33, ' ') + "\r");
}

// What an earlier download left is no part of the rate.
TEST_F(Pty, CountsFromWhatWasThere) {
  ProgressBar bar("work", 1000, ProgressUnit::kTokens, terminal_, [this] { return now_; });
  bar.SetDoneBefore(400);
  bar.Update(400);
  now_ += 0.5;
  bar.Update(500);
  EXPECT_EQ(Shown(), "\rwork  50 %, 200 tokens/s, 3 s left");
}

TEST_F(Pty, LeavesNoTraceOfWhatTakesNoTime) {
  { ProgressBar("work", 1000, ProgressUnit::kTokens, terminal_).Update(1000); }
  EXPECT_EQ(Shown(), "");
}

TEST(ProgressBarTest, ShowsNothingInAFile) {
  const std::string path = ScratchPath("file");
  const int fd = open(path.c_str(), O_RDWR | O_CREAT, 0600);
  double now = 0;
  {
    ProgressBar bar("work", 10, ProgressUnit::kBytes, fd, [&] { return now += 1; });
    for (int i = 0; i < 10; ++i) bar.Update(static_cast<uint64_t>(i));
  }
  EXPECT_EQ(ReadFile(path), "");
  close(fd);
  unlink(path.c_str());
}

TEST(LoggedProgressTest, WritesALineEachMinuteIntoALog) {
  const std::string path = ScratchPath("file");
  const int fd = open(path.c_str(), O_RDWR | O_CREAT, 0600);
  double now = 100;
  LoggedProgress progress("answering a\n", 1000, 400, ProgressUnit::kRequests, fd,
                          [&] { return now; });
  progress.Update(400, 0);
  now += 59.9;
  progress.Update(500, 0);
  EXPECT_EQ(ReadFile(path), "") << "within a minute";
  now += 0.1;
  progress.Update(520, 0);
  now += 59;
  progress.Update(600, 2);
  now += 1;
  progress.Update(640, 3);
  EXPECT_EQ(ReadFile(path),
            "inlay: answering a\\n: 520 of 1000, 2.0 requests/s, 4:00 min left\n"
            "inlay: answering a\\n: 640 of 1000, 3 failed, 2.0 requests/s, 3:00 min left\n");
  close(fd);
  unlink(path.c_str());
}

TEST_F(Pty, TheBarOfALogHasTheFailures) {
  {
    LoggedProgress progress("work", 1000, 400, ProgressUnit::kTokens, terminal_,
                            [this] { return now_; });
    progress.Update(400, 0);
    now_ += 0.5;
    progress.Update(500, 3);
    EXPECT_EQ(Shown(), "\rwork, 3 failed  50 %, 200 tokens/s, 3 s left");
    now_ += 100;
    progress.Update(1000, 3);
    EXPECT_THAT(Shown(), Not(HasSubstr("\n"))) << "a line for a log";
  }
}

// Works that take longer than a bar needs to appear, on any machine; they are ended when it has.
class Bars : public testing::Test {
 protected:
  ~Bars() override {
    for (const std::string& path : {input_, output_}) std::filesystem::remove(path);
  }

  // The bar appears, with a rate and the time left, and Ctrl-C ends the work without a trace.
  void Expect(const std::vector<std::string>& arguments, const std::string& what) {
    Terminal terminal(arguments, {{"TERM", "xterm"}});
    terminal.WaitFor(what);
    terminal.WaitFor(" %");
    terminal.WaitFor("/s, ");
    terminal.WaitFor(" left");
    terminal.Type(kCtrlC);
    EXPECT_NE(terminal.Finish().status, 0);
    EXPECT_FALSE(std::filesystem::exists(output_));
  }

  const std::string input_ = ScratchPath("input"), output_ = ScratchPath("output");
};

// A gigabyte at most, should nobody end it.
TEST_F(Bars, OfSynth) { Expect({"synth", "gemma-3-1b", "-o", output_}, "writing "); }

// Zeros that take no place on the disk.
TEST_F(Bars, OfQuantize) {
  constexpr uint64_t kRows = 1 << 18, kCols = 4096;
  GgufBytes file;
  file.Header(1, 2)
      .Key("general.architecture", GgufType::kString)
      .Text("none")
      .Key("none.block_count", GgufType::kUint32)
      .U32(1)
      .Tensor("blk.0.attn_q.weight", {kCols, kRows}, 0, 0)
      .PadTo(32);
  WriteFile(input_, file.bytes());
  std::filesystem::resize_file(input_, file.bytes().size() + kRows * kCols * sizeof(float));
  Expect({"quantize", input_, output_, "Q2_K"}, "quantizing ");
}

TEST_F(Bars, OfPrompts) {
  std::string text;
  while (text.size() < 8'000'000) text += ReadFile("LICENSE");
  WriteFile(input_, text);
  Expect({"generate", "-f", input_, "-c", "8000000", "-n", "1"}, "reading the prompt");
  Expect({"perplexity", "-f", input_}, "perplexity ");
}

// What a program reads holds no bar.
TEST(NoBars, ElsewhereThanOnATerminal) {
  const std::string output = ScratchPath("output");
  const ProgramResult synth = RunProgram({"synth", "bard", "-o", output, "--force"});
  EXPECT_EQ(synth.err, "");
  EXPECT_THAT(RunProgram({"quantize", output, output + "2", "Q4_0"}).err, Not(HasSubstr("\r")));
  EXPECT_THAT(RunProgram({"generate", "-m", output, "A", "-n", "1"}).err, Not(HasSubstr("\r")));
  unlink(output.c_str());
  unlink((output + "2").c_str());
}

}  // namespace
}  // namespace inlay
