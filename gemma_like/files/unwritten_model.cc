#include "gemma_like/files/unwritten_model.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cassert>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/byte_stream.h"
#include "base/status_macros.h"

namespace inlay {

absl::StatusOr<UnwrittenModel> UnwrittenModel::Create(const SynthModel& model,
                                                      const Quantization& quantization,
                                                      absl::string_view name) {
  INLAY_RETURN_IF_ERROR(DescribeFile(model, quantization, *model.metadata));
  INLAY_ASSIGN_OR_RETURN(const std::string header, model.metadata->Header());
  const uint64_t size = header.size() + model.metadata->data_size();
  // Pages that are never written need no memory, and read-only ones are not counted as if they did.
  void* const bytes =
      size > std::numeric_limits<size_t>::max()
          ? MAP_FAILED
          : mmap(nullptr, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (bytes == MAP_FAILED) {
    return absl::ResourceExhaustedError(
        absl::StrCat(name, ": there are no addresses for the ", size, " bytes of such a file"));
  }
  UnwrittenModel unwritten(static_cast<uint8_t*>(bytes), size);
  INLAY_RETURN_IF_ERROR(unwritten.Write(0, AsBytes(header.data(), header.size())));
  INLAY_ASSIGN_OR_RETURN(unwritten.file_,
                         GgufFile::Parse({unwritten.bytes_, unwritten.size_}, name));
  for (const SynthTensor& tensor : model.tensors) {
    if (tensor.values.empty()) continue;  // else it is no matrix, and stored as F32
    const absl::Span<const uint8_t> data = unwritten.file().FindTensor(tensor.name)->data;
    assert(data.size() == tensor.values.size() * sizeof(float));
    INLAY_RETURN_IF_ERROR(unwritten.Write(static_cast<size_t>(data.data() - unwritten.bytes_),
                                          AsBytes(tensor.values.data(), data.size())));
  }
  return unwritten;
}

absl::Status UnwrittenModel::Write(size_t at, absl::Span<const uint8_t> bytes) {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t first = at / page * page;
  if (mprotect(bytes_ + first, at + bytes.size() - first, PROT_READ | PROT_WRITE) != 0) {
    return absl::ResourceExhaustedError(absl::StrCat("there is no memory for the ", bytes.size(),
                                                     " bytes of a model's description"));
  }
  std::memcpy(bytes_ + at, bytes.data(), bytes.size());
  return absl::OkStatus();
}

UnwrittenModel::~UnwrittenModel() {
  if (bytes_ != nullptr) munmap(bytes_, size_);
}

}  // namespace inlay
