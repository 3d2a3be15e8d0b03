// The conversations of one forward pass: which of them still run, and which rows are theirs.
#ifndef INLAY_GEMMA_LIKE_MODEL_RUNNING_BATCH_H_
#define INLAY_GEMMA_LIKE_MODEL_RUNNING_BATCH_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "cache/hybrid_cache.h"
#include "cache/kv_cache.h"
#include "configs/config.h"
#include "gemma_like/engine.h"
#include "gemma_like/model/block.h"
#include "gemma_like/ranks/rank_pass.h"
#include "ops/views.h"

namespace inlay {

// The steps of a batch, from their transactions to their logits. Where several ranks compute the
// model, each has the same steps and drops the same ones.
template <ModelConfig Config>
struct RunningBatch {
  absl::Span<const SequenceStep> steps;
  absl::Span<absl::Status> outcomes;  // one for each step, or empty
  // The steps that have not failed, each with its cache and segment at the same index of `pass`.
  absl::InlinedVector<size_t, 8> running;
  absl::InlinedVector<Transaction, 8> transactions;
  PassState<Config> pass;
  size_t tokens = 0;
  // Whether to cancel, as of the last Poll: the whole batch, then each running step.
  absl::InlinedVector<uint8_t, 16> cancelled;

  // Begins the transactions. All rows of each segment are outputs; NumberRows assigns their
  // indices.
  absl::Status Begin() {
    absl::InlinedVector<absl::Status, 8> failures(steps.size());
    absl::InlinedVector<absl::StatusOr<Transaction>, 8> begun;
    for (size_t i = 0; i < steps.size(); ++i) {
      begun.push_back(steps[i].cache->Begin(steps[i].tokens));
      failures[i] = begun.back().status();
    }
    if (ranks() != nullptr) Unite(absl::MakeSpan(failures));
    for (size_t i = 0; i < steps.size(); ++i) {
      if (!failures[i].ok()) {
        INLAY_RETURN_IF_ERROR(Fail(i, failures[i]));
        continue;
      }
      // CheckBatch compared the config's fingerprint.
      auto* cache = static_cast<HybridCache<Config>*>(steps[i].cache);
      running.push_back(i);
      transactions.push_back(*std::move(begun[i]));
      pass.caches.push_back(cache);
      pass.segments.push_back({.position = cache->length(),
                               .row = 0,
                               .rows = steps[i].tokens.size(),
                               .out_row = 0,
                               .out_rows = steps[i].tokens.size()});
    }
    return absl::OkStatus();
  }

  // Numbers the segments' rows consecutively, and likewise their outputs. Returns the number of
  // rows.
  size_t NumberRows() {
    size_t row = 0, out_row = 0;
    for (SegmentRows& segment : pass.segments) {
      segment.row = std::exchange(row, row + segment.rows);
      segment.out_row = std::exchange(out_row, out_row + segment.out_rows);
    }
    return row;
  }

  // Rows whose logits are wanted.
  size_t Outputs() const {
    size_t outputs = 0;
    for (const size_t step : running) outputs += steps[step].logit_rows;
    return outputs;
  }

  // Asks whether the batch was cancelled, and if not, whether each of the first `count` running
  // steps was. Returns the first of these.
  bool Poll(const CancelCheck& cancel, size_t count) {
    cancelled.assign(1 + count, 0);
    if (ranks() != nullptr && tokens < ranks()->group().cancel_rows()) return false;
    cancelled[0] = cancel && cancel();
    for (size_t i = 0; i < count && !cancelled[0]; ++i) {
      const CancelCheck& of_step = steps[running[i]].cancel;
      cancelled[1 + i] = of_step && of_step();
    }
    if (ranks() != nullptr) ranks()->Follow(absl::MakeSpan(cancelled));
    return cancelled[0];
  }

  // Removes the segments that Poll has found cancelled. Returns whether there were any.
  absl::StatusOr<bool> DropCancelled(int layer) {
    size_t kept = 0, row = 0;
    for (size_t i = 0; i < running.size(); ++i) {
      const size_t step = running[i];
      if (cancelled[1 + i]) {
        INLAY_RETURN_IF_ERROR(
            Fail(step, absl::CancelledError(absl::StrCat("cancelled before layer ", layer))));
        continue;
      }
      const SegmentRows segment = pass.segments[i];
      if (kept < i) {
        MoveRows(pass.residual, segment.row, segment.rows, row);
        MoveRows(pass.inputs, segment.row, segment.rows, row);
        running[kept] = step;
        transactions[kept] = std::move(transactions[i]);
        pass.caches[kept] = pass.caches[i];
        pass.segments[kept] = segment;
      }
      ++kept;
      row += segment.rows;
    }
    if (kept == running.size()) return false;
    running.resize(kept);
    transactions.erase(transactions.begin() + static_cast<ptrdiff_t>(kept), transactions.end());
    pass.caches.resize(kept);
    pass.segments.resize(kept);
    pass.residual = pass.residual.Slice(0, NumberRows());
    pass.inputs = pass.inputs.Slice(0, pass.residual.rows);
    return true;
  }

  // Makes the wanted rows the outputs of the segments, and lists them. Only these are left of the
  // layers' inputs, which are read after the mixers.
  const int32_t* Narrow(size_t outputs) {
    int32_t* const rows = pass.pass.arena.Ints(outputs);
    size_t out = 0;
    for (size_t i = 0; i < running.size(); ++i) {
      SegmentRows& segment = pass.segments[i];
      segment.out_row = out;
      segment.out_rows = steps[running[i]].logit_rows;
      for (size_t r = segment.rows - segment.out_rows; r < segment.rows; ++r) {
        MoveRows(pass.inputs, segment.row + r, 1, out);
        rows[out++] = static_cast<int32_t>(segment.row + r);
      }
    }
    pass.inputs = pass.inputs.Slice(0, outputs);
    return rows;
  }

  // Called after the layer that narrowed the batch: its outputs become the rows of the layers that
  // follow.
  void ContinueWithOutputs() {
    for (SegmentRows& segment : pass.segments) {
      segment.position = segment.OutPosition();
      segment.row = segment.out_row;
      segment.rows = segment.out_rows;
    }
  }

  // Moves the logits of the steps that succeeded, which are stored consecutively, to their places
  // among those of all steps. Rows only move towards the end, so the last is moved first.
  void SpreadLogits(FloatRows logits) const {
    size_t from = Outputs(), to = logits.rows;
    size_t left = running.size();
    for (size_t step = steps.size(); step-- > 0;) {
      const size_t rows = steps[step].logit_rows;
      to -= rows;
      if (left == 0 || running[left - 1] != step) continue;
      --left;
      from -= rows;
      for (size_t r = rows; from != to && r-- > 0;) {
        std::copy_n(logits.Row(from + r), logits.cols, logits.Row(to + r));
      }
    }
  }

 private:
  RankPass* ranks() const { return pass.pass.ranks; }

  // Records the error as the outcome of this step, so that the other steps continue; returns it
  // where there are no outcomes, so that the whole batch fails.
  absl::Status Fail(size_t step, absl::Status error) const {
    if (outcomes.empty()) return error;
    outcomes[step] = std::move(error);
    return absl::OkStatus();
  }

  // What failed at one rank has failed at all, and no rank's conversation goes back further than
  // another's: how far the layers go back depends on whether there was memory for all of them, and
  // on whether a fork shared their blocks, which one rank may still have that another has dropped.
  // Afterwards all floors rise alike, so the ranks agree on every rewind without asking each other.
  void Unite(absl::Span<absl::Status> failures) {
    // Of each step twice the floor, and 1 more if it failed.
    const size_t count = failures.size();
    std::vector<uint64_t> own(count);
    for (size_t i = 0; i < count; ++i)
      own[i] = 2 * steps[i].cache->RewindFloor() + (failures[i].ok() ? 0 : 1);
    const absl::Span<const uint64_t> all = ranks()->Share(own);
    for (size_t i = 0; i < all.size(); ++i) {
      steps[i % count].cache->RaiseRewindFloor(all[i] / 2);
      if (all[i] % 2 == 0 || !failures[i % count].ok()) continue;
      failures[i % count] =
          absl::ResourceExhaustedError("another rank has no memory for this conversation");
    }
  }

  // Copies the rows [from, from + count) to those from `to` on, which is not after `from`.
  static void MoveRows(FloatRows x, size_t from, size_t count, size_t to) {
    if (from == to) return;
    std::copy_n(x.data + from * x.cols, count * x.cols, x.data + to * x.cols);
  }
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_MODEL_RUNNING_BATCH_H_
