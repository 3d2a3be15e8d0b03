#include "io/file/bundle.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "io/file/mapped_file.h"

namespace inlay {
namespace {

// The last bytes of a bundle, in their order in the file.
struct Trailer {
  uint64_t offset;
  uint64_t size;
  char magic[8];
};
static_assert(sizeof(Trailer) == 24);
static_assert(kBundleMagic.size() == sizeof(Trailer::magic));

// The program's executable contains these bytes exactly once; BeginBundle sets the last one to '1'
// in its copy. Volatile, so that the compiler does not assume the value below.
const volatile char kMark[] = {'I', 'N', 'L', 'A', 'Y', ' ', 'm', 'o', 'd',  'e',  'l',  ' ',
                               'f', 'o', 'l', 'l', 'o', 'w', 's', ':', 0x1D, 0x6E, 0x53, '0'};
constexpr size_t kMarkBytes = sizeof(kMark) - 1;  // without the last

// Where the program has its mark; npos where it has none.
size_t FindMark(absl::Span<const uint8_t> program) {
  std::string mark;
  for (size_t i = 0; i < kMarkBytes; ++i) mark.push_back(kMark[i]);
  const absl::string_view text(reinterpret_cast<const char*>(program.data()), program.size());
  const size_t at = text.find(mark);
  return at == text.npos || at + kMarkBytes >= program.size() ? text.npos : at;
}

// Writes a program with its mark set, if it has one.
absl::Status WriteMarked(absl::Span<const uint8_t> program, AtomicFile& file) {
  const size_t at = FindMark(program);
  if (at == absl::string_view::npos) return file.Write(program);
  const uint8_t set = '1';
  INLAY_RETURN_IF_ERROR(file.Write(program.first(at + kMarkBytes)));
  INLAY_RETURN_IF_ERROR(file.Write({&set, 1}));
  return file.Write(program.subspan(at + kMarkBytes + 1));
}

}  // namespace

bool RunsAsBundle() { return kMark[kMarkBytes] == '1'; }

absl::StatusOr<absl::Span<const uint8_t>> FindBundle(absl::Span<const uint8_t> file,
                                                     absl::string_view name) {
  if (file.size() < sizeof(Trailer)) return absl::Span<const uint8_t>();
  Trailer trailer;
  const size_t end = file.size() - sizeof(trailer);
  std::memcpy(&trailer, file.data() + end, sizeof(trailer));
  if (absl::string_view(trailer.magic, sizeof(trailer.magic)) != kBundleMagic)
    return absl::Span<const uint8_t>();
  if (trailer.offset % kBundleAlignment != 0 || trailer.offset > end ||
      trailer.size != end - trailer.offset) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": the bundled model is declared with ", trailer.size,
                     " bytes from byte ", trailer.offset, ", but it must end at byte ", end,
                     " and start at a multiple of ", kBundleAlignment));
  }
  return file.subspan(trailer.offset, trailer.size);
}

bool IsBundledProgram(absl::Span<const uint8_t> file) {
  constexpr uint8_t kElf[] = {0x7F, 'E', 'L', 'F'};
  if (!std::equal(std::begin(kElf), std::end(kElf), file.begin(),
                  file.begin() + std::min(file.size(), sizeof(kElf)))) {
    return false;  // without a search through a file of another kind
  }
  const size_t at = FindMark(file);
  return at != absl::string_view::npos && file[at + kMarkBytes] == '1';
}

absl::StatusOr<bool> FindsItsBundle(const std::string& program) {
  INLAY_ASSIGN_OR_RETURN(const MappedFile mapped, MappedFile::Open(program));
  return FindMark(mapped.bytes()) != absl::string_view::npos;
}

absl::StatusOr<AtomicFile> BeginBundle(const std::string& program, const std::string& path,
                                       Replace replace) {
  INLAY_ASSIGN_OR_RETURN(const MappedFile mapped, MappedFile::Open(program));
  absl::Span<const uint8_t> bytes = mapped.bytes();
  INLAY_ASSIGN_OR_RETURN(const absl::Span<const uint8_t> old, FindBundle(bytes, program));
  if (!old.empty()) bytes = bytes.first(static_cast<size_t>(old.data() - bytes.data()));
  INLAY_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path, FileKind::kProgram, replace));
  INLAY_RETURN_IF_ERROR(WriteMarked(bytes, file));
  INLAY_RETURN_IF_ERROR(mapped.CheckWhole(program));
  const uint64_t rest = file.size() % kBundleAlignment;
  if (rest != 0) INLAY_RETURN_IF_ERROR(file.Write(std::vector<uint8_t>(kBundleAlignment - rest)));
  return file;
}

absl::Status EndBundle(AtomicFile file, uint64_t offset) {
  Trailer trailer{.offset = offset, .size = file.size() - offset, .magic = {}};
  std::memcpy(trailer.magic, kBundleMagic.data(), sizeof(trailer.magic));
  INLAY_RETURN_IF_ERROR(file.Write({reinterpret_cast<const uint8_t*>(&trailer), sizeof(trailer)}));
  return file.Commit();
}

}  // namespace inlay
