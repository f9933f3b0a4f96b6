// The loops of sparse_concat and its transpose on the CPU.
//
// Bounds and order are checked in the pass that moves the entries. Where a
// check fails the result is void, and the caller finds out what is wrong, or
// sorts, and runs again. No input, however wrong, makes these loops touch
// memory they should not.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <limits>
#include <mutex>
#include <type_traits>
#include <vector>

#include "../common/element.h"
#include "../common/index_math.h"
#include "columns.h"
#include "concat_blocks.h"
#include "concat_merge.h"
#include "concat_move.h"
#include "concat_places.h"
#include "concat_runs.h"
#include "concat_scratch.h"
#include "inspect.h"

namespace tso {

template <int kBytes, ConcatDirection kDirection>
struct ConcatKernel {
  ConcatMove<kBytes, kDirection> move;
  const ConcatBlocks& blocks;
  bool single_prefix;

  // Does outputs [begin, end) of block b, which are the whole block unless it
  // has but one prefix.
  void run(
      int64_t b, int64_t begin, int64_t end, ConcatScratch& scratch) const {
    const uint64_t prefixes =
        blocks.first_prefix[b + 1] - blocks.first_prefix[b];
    const uint64_t count = static_cast<uint64_t>(end - begin);
    if (count == 0) {
      return;
    }
    if (single_prefix || prefixes == 1 || one_input(b)) {
      return copy_inputs(b, begin, end, scratch);
    }
    if (count > std::numeric_limits<int32_t>::max()) {
      scratch.findings.bad = -1;  // blocks are far smaller unless out of order
      return;
    }
    // Copying runs pays from about 1.5 entries each.
    const uint64_t inputs = static_cast<uint64_t>(move.job.inputs());
    if (prefixes <= 2 * count / (3 * inputs)) {
      return do_long_runs(move, blocks, b, scratch);
    }
    const ConcatReference reference(move.job.inputs(), end - begin);
    const int shift = bin_shift(prefixes, end - begin);
    if (shift == 0 && reference.width() <= 32) {
      return do_short_runs(
          move, blocks, b, reference, scratch, scratch.narrow_slots);
    }
    if (shift == 0) {
      return do_short_runs(move, blocks, b, reference, scratch, scratch.slots);
    }
    if (can_merge_inputs(move.job.inputs(), prefixes, end - begin)) {
      return do_merged_inputs(move, blocks, b, scratch);
    }
    if (bits(prefixes - 1) + reference.width() <= 64) {
      return do_sparse_prefixes(
          move, blocks, b, shift, reference, scratch, scratch.slots);
    }
    do_sparse_prefixes(
        move, blocks, b, shift, reference, scratch, scratch.wide_slots);
  }

 private:
  // Whether all entries of a block are from one input: copying them takes half
  // the time of runs.
  bool one_input(int64_t b) const {
    const int64_t* first = blocks.places_of(b);
    const int64_t* last = blocks.places_of(b + 1);
    int64_t filled = 0;
    for (int64_t i = 0; i < blocks.inputs; ++i) {
      filled += last[i] > first[i] ? 1 : 0;
    }
    return filled == 1;
  }

  bool can_copy_at_once(const ConcatSource& source) const {
    return move.moves_indices() && source.direct() && move.job.axis == 0 &&
           (move.job.rank == 2 || move.job.rank == 3);
  }

  // Checks and copies entries in one pass.
  void copy_at_once(
      const ConcatSource& source,
      int64_t place,
      int64_t begin,
      int64_t end,
      ConcatScratch& scratch) const {
    const int64_t* columns[3];
    int64_t* outs[3];
    for (int64_t d = 0; d < move.job.rank; ++d) {
      columns[d] = source.indices.data + d * source.indices.dim_stride + place;
      outs[d] = move.out_column(d) + begin;
    }
    const auto copy = [&](auto rank) {
      inspect_and_copy<rank()>(
          columns, source.shape, place == 0, end - begin, source.offset, outs,
          scratch.findings);
    };
    call_simd([&] {
      if (move.job.rank == 2) {
        copy(std::integral_constant<int, 2>{});
      } else {
        copy(std::integral_constant<int, 3>{});
      }
    });
    move.values(source, place, begin, end - begin);
  }

  // The entries of a block of one prefix or one input: input after input.
  void copy_inputs(
      int64_t b, int64_t begin, int64_t end, ConcatScratch& scratch) const {
    const ConcatJob& job = move.job;
    const int64_t* first = blocks.places_of(b);
    const int64_t* last = blocks.places_of(b + 1);
    int64_t run_begin = blocks.starts[b];
    for (int64_t i = 0; i < job.inputs() && run_begin < end; ++i) {
      const ConcatSource& source = job.sources[i];
      const int64_t run_end = run_begin + last[i] - first[i];
      const int64_t from = std::max(begin, run_begin);
      const int64_t to = std::min(end, run_end);
      if (can_copy_at_once(source)) {
        if (from < to) {
          copy_at_once(source, first[i] + from - run_begin, from, to, scratch);
        }
        run_begin = run_end;
        continue;
      }
      for (int64_t output = from; output < to; output += kColumnBlock) {
        const int64_t place = first[i] + output - run_begin;
        const int64_t some = std::min(kColumnBlock, to - output);
        const int64_t* prefixes =
            single_prefix
                ? inspect_entries(job, source, place, some, scratch)
                : inspect_block(job, blocks, b, source, place, some, scratch);
        if (prefixes == nullptr) {
          return;
        }
        move.run(source, place, output, some, scratch);
      }
      run_begin = run_end;
    }
  }
};

// Outputs of one task where a block is mere copies: some tasks for each thread,
// none so small that handing it over costs more than it saves.
inline int64_t copy_task(int64_t total, int64_t threads) {
  return std::clamp(total / (2 * threads), int64_t{1} << 14, int64_t{1} << 16);
}

// Does the whole job.
template <ConcatDirection kDirection, typename Parallel>
Findings run_concat(const Parallel& parallel, const ConcatJob& job) {
  struct Task {
    int64_t block, begin, end;
  };
  struct Worker {
    ConcatScratch scratch;
    Findings* all = nullptr;
    std::mutex* mutex = nullptr;

    ~Worker() {
      if (all != nullptr) {
        const std::lock_guard<std::mutex> lock(*mutex);
        all->add(scratch.findings);
      }
    }
  };
  bool single_prefix = true;
  for (int64_t d = 0; d < job.axis; ++d) {
    single_prefix &= job.out_shape[d] == 1;
  }
  const ConcatBlocks blocks = cut_blocks(parallel, job, single_prefix);
  std::vector<Task> tasks;
  for (int64_t b = 0; b < blocks.count(); ++b) {
    const int64_t end = blocks.starts[b + 1];
    const bool divisible =
        single_prefix ||
        blocks.first_prefix[b + 1] - blocks.first_prefix[b] == 1;
    const int64_t step =
        divisible ? copy_task(job.total, parallel.threads) : end;
    for (int64_t begin = blocks.starts[b]; begin < end; begin += step) {
      tasks.push_back({b, begin, end - begin < step ? end : begin + step});
    }
  }
  Findings findings;
  std::mutex mutex;
  std::atomic<bool> is_void{false};
  dispatch_width(job.width, [&](auto width) {
    const ConcatKernel<width(), kDirection> kernel{
        {job}, blocks, single_prefix};
    parallel.template each_task<Worker>(
        static_cast<int64_t>(tasks.size()), [&](int64_t i, Worker& worker) {
          if (is_void.load(std::memory_order_relaxed)) {
            return;
          }
          worker.all = &findings;
          worker.mutex = &mutex;
          const Task& task = tasks[i];
          kernel.run(task.block, task.begin, task.end, worker.scratch);
          if (worker.scratch.findings.bad < 0) {
            is_void.store(true, std::memory_order_relaxed);
          }
        });
  });
  return findings;
}

}  // namespace tso
