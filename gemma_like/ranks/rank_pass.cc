#include "gemma_like/ranks/rank_pass.h"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstring>
#include <utility>

#include "ops/matmul/quantized_rows.h"

namespace inlay {
namespace {

// Products of one phase: experts with two matrices each.
constexpr size_t kMostTasks = 1024;

}  // namespace

RankPass::RankPass(std::shared_ptr<Ranks> ranks, size_t most_cols)
    : ranks_(std::move(ranks)),
      buffer_(std::max(most_cols, kExchangeFloats)),
      sizes_(ranks_->count()) {
  // Memory may run out here alone: in a pass the other ranks would wait.
  rows_.reserve(kExchangeFloats / kTileRows + 1);
  own_.reserve(kMostTasks);
}

std::span<const MatMulTask> RankPass::OwnRows(std::span<const MatMulTask> tasks) {
  own_.assign(tasks.begin(), tasks.end());
  for (MatMulTask& task : own_) {
    assert(task.y.cols == task.w->whole_rows());
    task.y = task.y.Columns(task.w->first_row(), task.w->rows());
  }
  return own_;
}

template <class Bytes, class Pack, class Unpack>
void RankPass::Exchange(size_t n, const Bytes& bytes, const Pack& pack, const Unpack& unpack,
                        GatherTo to) {
  const size_t count = ranks_->count();
  char* const all = reinterpret_cast<char*>(buffer_.data());
  char* at = all;
  for (size_t r = 0; r < count; ++r) {
    char* const start = at;
    for (size_t i = 0; i < n; ++i) {
      if (r == ranks_->rank()) pack(i, at);
      at += bytes(r, i);
    }
    sizes_[r] = static_cast<size_t>(at - start);
  }
  assert(static_cast<size_t>(at - all) <= buffer_.size() * sizeof(float));
  if (to == GatherTo::kFirst) {
    ranks_->GatherToFirst(sizes_, all);
    if (ranks_->rank() != 0) return;
  } else {
    ranks_->Gather(sizes_, all);
  }
  at = all;
  for (size_t r = 0; r < count; ++r) {
    for (size_t i = 0; i < n; ++i) {
      if (r != ranks_->rank()) unpack(r, i, at);
      at += bytes(r, i);
    }
  }
}

void RankPass::Complete(std::span<const MatMulTask> tasks, GatherTo to) {
  size_t floats = 0;
  rows_.clear();
  for (const MatMulTask& task : tasks) {
    if (!task.w->is_part()) continue;
    for (size_t r = 0; r < task.y.rows; ++r) {
      if (floats + task.y.cols > buffer_.size()) {
        ExchangeRows(to);
        floats = 0;
        rows_.clear();
      }
      floats += task.y.cols;
      rows_.push_back({&task, r});
    }
  }
  if (!rows_.empty()) ExchangeRows(to);
}

void RankPass::ExchangeRows(GatherTo to) {
  const auto part = [&](size_t r, size_t i) {
    return RowsOfRank(rows_[i].task->y.cols, {r, ranks_->count()});
  };
  const auto row = [&](size_t i) { return rows_[i].task->y.Row(rows_[i].row); };
  Exchange(
      rows_.size(), [&](size_t r, size_t i) { return part(r, i).count * sizeof(float); },
      [&](size_t i, char* bytes) {
        const PartRange own = part(ranks_->rank(), i);
        std::memcpy(bytes, row(i) + own.first, own.count * sizeof(float));
      },
      [&](size_t r, size_t i, const char* bytes) {
        const PartRange other = part(r, i);
        std::memcpy(row(i) + other.first, bytes, other.count * sizeof(float));
      },
      to);
}

void RankPass::CompleteColumns(QuantizedRows quantized, Bf16Rows bf16, FloatRows x,
                               RankSplit split) {
  const bool has_blocks = quantized.blocks != nullptr, has_bf16 = bf16.data != nullptr;
  const bool has_floats = !has_blocks && !has_bf16;
  const auto part = [&](size_t r) { return split.Columns(x.cols, {r, ranks_->count()}); };
  const auto for_spans = [&](size_t r, const auto& f) {
    for (size_t s = 0; s < split.spans; ++s) f(s * (x.cols / split.spans) + part(r).first);
  };
  // Calls f(memory, bytes) for a rank's columns of row t, span by span and form by form.
  const auto for_columns = [&](size_t t, size_t r, const auto& f) {
    const size_t count = part(r).count;
    for_spans(r, [&](size_t first) {
      if (has_blocks) {
        QuantizedBlock* const row = quantized.Row(t) + first / kQuantBlock;
        for (size_t b = 0; b < count / kQuantBlock; ++b) f(row + b, kGatheredBlockBytes);
      }
      if (has_bf16) f(bf16.Row(t) + first, count * sizeof(Bf16));
      if (has_floats) f(x.Row(t) + first, count * sizeof(float));
    });
  };
  const auto bytes_of = [&](size_t columns) {
    return (has_blocks ? columns / kQuantBlock * kGatheredBlockBytes : 0) +
           columns * ((has_bf16 ? sizeof(Bf16) : 0) + (has_floats ? sizeof(float) : 0));
  };
  const size_t most = std::max<size_t>(1, buffer_.size() * sizeof(float) / bytes_of(x.cols));
  for (size_t first = 0; first < x.rows; first += most) {
    Exchange(
        std::min(most, x.rows - first),
        [&](size_t r, size_t) { return bytes_of(split.spans * part(r).count); },
        [&](size_t i, char* bytes) {
          for_columns(first + i, ranks_->rank(), [&](const void* from, size_t n) {
            std::memcpy(bytes, from, n);
            bytes += n;
          });
        },
        [&](size_t r, size_t i, const char* bytes) {
          for_columns(first + i, r, [&](void* into, size_t n) {
            std::memcpy(into, bytes, n);
            bytes += n;
          });
          if (!has_blocks) return;
          for_spans(r, [&](size_t column) {
            QuantizedBlock* const row = quantized.Row(first + i) + column / kQuantBlock;
            for (size_t b = 0; b < part(r).count / kQuantBlock; ++b) SetSums(row[b]);
          });
        },
        GatherTo::kAll);
  }
}

absl::Span<const uint64_t> RankPass::Share(absl::Span<const uint64_t> own) {
  shared_.assign(own.size() * ranks_->count(), 0);
  std::copy(own.begin(), own.end(), shared_.data() + own.size() * ranks_->rank());
  std::fill(sizes_.begin(), sizes_.end(), own.size() * sizeof(uint64_t));
  ranks_->Gather(sizes_, reinterpret_cast<char*>(shared_.data()));
  return shared_;
}

bool RankPass::AnyOf(bool own) {
  const uint64_t number = own ? 1 : 0;
  const absl::Span<const uint64_t> all = Share({&number, 1});
  return std::any_of(all.begin(), all.end(), [](uint64_t of_rank) { return of_rank != 0; });
}

void RankPass::Follow(absl::Span<uint8_t> flags) {
  ranks_->Broadcast({reinterpret_cast<char*>(flags.data()), flags.size()});
}

}  // namespace inlay
