// The loops of sparse_concat and its transpose on the CPU.
//
// Bounds and order are checked in the pass that moves the entries. Where a
// check fails the result is void, and the caller finds out what is wrong, or
// sorts, and runs again. No input, however wrong, makes these loops touch
// memory they should not.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <mutex>
#include <vector>

#include "../common/element.h"
#include "../common/index_math.h"
#include "columns.h"
#include "concat_blocks.h"
#include "concat_places.h"
#include "concat_runs.h"
#include "concat_scratch.h"
#include "inspect.h"

namespace tso {

enum class ConcatDirection { kForward, kTranspose };

template <int kBytes, ConcatDirection kDirection>
struct ConcatKernel {
  const ConcatJob& job;
  const ConcatBlocks& blocks;
  bool single_prefix;

  static constexpr bool kForward = kDirection == ConcatDirection::kForward;

  // Does outputs [begin, end) of block b. Only a block of one prefix may be
  // done in parts.
  void run(
      int64_t b, int64_t begin, int64_t end, ConcatScratch& scratch) const {
    const uint64_t prefixes =
        blocks.first_prefix[b + 1] - blocks.first_prefix[b];
    if (begin == end) {
      return;
    }
    if (single_prefix || prefixes == 1) {
      copy_inputs(b, begin, end, scratch);
    } else if (end - begin > std::numeric_limits<uint32_t>::max()) {
      scratch.findings.bad = -1;  // blocks are far smaller unless out of order
    } else if (has_long_runs(prefixes, end - begin)) {
      collect_runs(job, blocks, b, scratch);
      order_runs(job.inputs(), prefixes, scratch);
      merge_runs(b, scratch);
    } else {
      place_entries(job, blocks, b, scratch);
      scatter_entries(b, scratch);
    }
  }

 private:
  // Copying runs pays from about kLongRun entries each; wide values always
  // gain from being moved several at once.
  static constexpr int64_t kLongRun = 3;

  bool has_long_runs(uint64_t prefixes, int64_t count) const {
    return prefixes * static_cast<uint64_t>(job.inputs() * kLongRun) <=
        static_cast<uint64_t>(count);
  }

  // The entries of a block of one prefix: input after input.
  void copy_inputs(
      int64_t b, int64_t begin, int64_t end, ConcatScratch& scratch) const {
    const int64_t* first = blocks.places_of(b);
    const int64_t* last = blocks.places_of(b + 1);
    int64_t run_begin = blocks.starts[b];
    for (int64_t i = 0; i < job.inputs() && run_begin < end; ++i) {
      const int64_t run_end = run_begin + last[i] - first[i];
      const int64_t from = std::max(begin, run_begin);
      const int64_t to = std::min(end, run_end);
      for (int64_t output = from; output < to; output += kColumnBlock) {
        const int64_t place = first[i] + output - run_begin;
        const int64_t some = std::min(kColumnBlock, to - output);
        const int64_t* prefixes =
            inspect_entries(job, job.sources[i], place, some, scratch);
        uint64_t differs = 0;
        for (int64_t j = 0; !single_prefix && j < some; ++j) {
          differs |=
              static_cast<uint64_t>(prefixes[j]) ^ blocks.first_prefix[b];
        }
        scratch.findings.bad |= differs != 0 ? -1 : 0;
        copy_run(job.sources[i], place, output, some, scratch);
      }
      run_begin = run_end;
    }
  }

  void merge_runs(int64_t b, ConcatScratch& scratch) const {
    const int64_t* first = blocks.places_of(b);
    const uint32_t found = scratch.bounds[job.inputs()];
    int64_t output = blocks.starts[b];
    for (uint32_t r = 0; r < found; ++r) {
      const ConcatRun& run = scratch.runs[r];
      const uint32_t begin = scratch.starts[scratch.bounds[run.input]];
      copy_run(
          job.sources[run.input], first[run.input] + run.at - begin, output,
          run.length, scratch);
      output += run.length;
    }
  }

  // Entries that are neighbours in the source and in the result.
  void copy_run(
      const ConcatSource& source,
      int64_t place,
      int64_t output,
      int64_t length,
      ConcatScratch& scratch) const {
    for (int64_t d = 0; job.out_indices != nullptr && d < job.rank; ++d) {
      int64_t* out = job.out_indices + d * job.total + output;
      const int64_t offset = d == job.axis ? source.offset : 0;
      for (int64_t at = 0; at < length; at += kColumnBlock) {
        const int64_t some = std::min(kColumnBlock, length - at);
        const int64_t* in = column(
            source.indices, source.order, d, place + at, some,
            scratch.columns.data());
        for (int64_t i = 0; i < some; ++i) {
          out[at + i] = multiply_add(in[i], 1, offset);
        }
      }
    }
    if (source.order == nullptr) {
      char* in = source.values + place * job.width;
      char* out = job.out_values + output * job.width;
      std::memcpy(kForward ? out : in, kForward ? in : out, length * job.width);
      return;
    }
    for (int64_t i = 0; i < length; ++i) {
      move_value(source, source.order[place + i], output + i);
    }
  }

  void move_value(
      const ConcatSource& source, int64_t entry, int64_t output) const {
    if constexpr (kForward) {
      move_element<kBytes>(
          job.out_values, output, source.values, entry, job.width);
    } else {
      move_element<kBytes>(
          source.values, entry, job.out_values, output, job.width);
    }
  }

  void scatter_entries(int64_t b, ConcatScratch& scratch) const {
    const int64_t* first = blocks.places_of(b);
    const int64_t* last = blocks.places_of(b + 1);
    const int64_t start = blocks.starts[b];
    const uint32_t* targets = scratch.bins.data();
    for (int64_t i = 0; i < job.inputs(); ++i) {
      const ConcatSource& source = job.sources[i];
      for (int64_t place = first[i]; place < last[i]; place += kColumnBlock) {
        const int64_t some = std::min(kColumnBlock, last[i] - place);
        for (int64_t d = 0; job.out_indices != nullptr && d < job.rank; ++d) {
          const int64_t* in = column(
              source.indices, source.order, d, place, some,
              scratch.columns.data());
          int64_t* out = job.out_indices + d * job.total + start;
          const int64_t offset = d == job.axis ? source.offset : 0;
          for (int64_t j = 0; j < some; ++j) {
            out[targets[j]] = multiply_add(in[j], 1, offset);
          }
        }
        if (source.order == nullptr) {
          for (int64_t j = 0; j < some; ++j) {
            move_value(source, place + j, start + targets[j]);
          }
        } else {
          for (int64_t j = 0; j < some; ++j) {
            move_value(source, source.order[place + j], start + targets[j]);
          }
        }
        targets += some;
      }
    }
  }
};

// Outputs of one task where a block is mere copies.
constexpr int64_t kConcatCopyTask = int64_t{1} << 16;

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
    const bool divisible = single_prefix ||
        blocks.first_prefix[b + 1] - blocks.first_prefix[b] == 1;
    const int64_t step = divisible ? kConcatCopyTask : end;
    for (int64_t begin = blocks.starts[b]; begin < end; begin += step) {
      tasks.push_back({b, begin, end - begin < step ? end : begin + step});
    }
  }
  Findings findings;
  std::mutex mutex;
  dispatch_width(job.width, [&](auto width) {
    const ConcatKernel<width(), kDirection> kernel{job, blocks, single_prefix};
    parallel.template each_task<Worker>(
        static_cast<int64_t>(tasks.size()), [&](int64_t i, Worker& worker) {
          worker.all = &findings;
          worker.mutex = &mutex;
          const Task& task = tasks[i];
          kernel.run(task.block, task.begin, task.end, worker.scratch);
        });
  });
  return findings;
}

}  // namespace tso
