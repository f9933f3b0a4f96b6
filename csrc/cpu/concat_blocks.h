// How the work of sparse_concat is cut up on the CPU.
//
// Within one prefix (the coordinates before the axis) the result is the run of
// input 0, then that of input 1, and so on. So blocks of whole prefixes can be
// done alone, and a block of one prefix is copies.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "../common/index_math.h"

namespace tso {

// One input as the kernels see it.
struct ConcatSource {
  IndexView indices;
  int64_t nnz;
  int64_t offset;  // added to the coordinate on the axis
  const int64_t* shape;
  char* values;  // read by the forward, written by the transpose

  // Neighbours are neighbours in memory.
  bool direct() const {
    return indices.row_stride == 1;
  }
};

// What all inputs share.
struct ConcatJob {
  int64_t rank;
  int64_t axis;
  int64_t total;
  const int64_t* out_shape;
  std::vector<ConcatSource> sources;
  int64_t* out_indices;  // one row of total per dimension; null: not wanted
  char* out_values;      // written by the forward, read by the transpose
  int64_t width;         // bytes of one entry's values

  int64_t inputs() const {
    return static_cast<int64_t>(sources.size());
  }

  // The linear number of an entry's first `dims` coordinates, at least one.
  // Wraps for coordinates out of bounds.
  int64_t number(const IndexView& indices, int64_t entry, int64_t dims) const {
    int64_t number = indices.at(entry, 0);
    for (int64_t d = 1; d < dims; ++d) {
      number = multiply_add(number, out_shape[d], indices.at(entry, d));
    }
    return number;
  }

  // The number of the coordinates before the axis.
  uint64_t prefix(const ConcatSource& source, int64_t place) const {
    return static_cast<uint64_t>(number(source.indices, place, axis));
  }
};

// Block b holds, of each input, the entries in [place(b), place(b + 1)), whose
// prefixes lie in [first_prefix[b], first_prefix[b + 1]) if the input is
// sorted. Whatever the inputs hold, every entry is in one block and places
// never go back.
struct ConcatBlocks {
  std::vector<uint64_t> first_prefix;  // blocks + 1
  std::vector<int64_t> places;         // (blocks + 1) rows of one per input
  std::vector<int64_t> starts;         // blocks + 1, in the result
  int64_t inputs;

  int64_t count() const {
    return static_cast<int64_t>(starts.size()) - 1;
  }
  int64_t size(int64_t b) const {
    return starts[b + 1] - starts[b];
  }
  // One per input.
  const int64_t* places_of(int64_t b) const {
    return places.data() + b * inputs;
  }
};

// Outputs of one block: what a block writes and its tables fit the second-level
// cache.
constexpr int64_t kConcatBlock = int64_t{1} << 14;

// First place in [from, nnz) with a prefix of at least `bound`, found by
// doubling steps, since it is near.
inline int64_t gallop(
    const ConcatJob& job,
    const ConcatSource& source,
    int64_t from,
    uint64_t bound) {
  int64_t step = 64;
  int64_t low = from;
  while (low + step < source.nnz && job.prefix(source, low + step) < bound) {
    low += step;
    step *= 2;
  }
  int64_t high = std::min(low + step, source.nnz);
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (job.prefix(source, middle) < bound) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// The prefixes that blocks begin with, but for the first and the last: every
// so manyth of a sample of all inputs' prefixes. A prefix that fills a block or
// more gets one of its own.
inline std::vector<uint64_t> choose_splitters(const ConcatJob& job) {
  const int64_t inputs = job.inputs();
  // Finding a block's place in an input costs as much as moving some entries.
  const int64_t block = std::max(kConcatBlock, 64 * inputs);
  std::vector<uint64_t> splitters;
  if (job.total < 2 * block) {
    return splitters;
  }
  // The more inputs, the more their samples err together.
  const int64_t per_block = static_cast<int64_t>(
      4 * std::ceil(std::sqrt(static_cast<double>(inputs))));
  const int64_t spacing = std::max<int64_t>(block / per_block, 1);
  std::vector<uint64_t> sample;
  sample.reserve(job.total / spacing + 1);
  int64_t next = spacing / 2;  // counted through the inputs end to end
  for (const ConcatSource& source : job.sources) {
    for (; next < source.nnz; next += spacing) {
      sample.push_back(job.prefix(source, next));
    }
    next -= source.nnz;
  }
  std::sort(sample.begin(), sample.end());
  for (size_t at = per_block; at < sample.size(); at += per_block) {
    const uint64_t prefix = sample[at];
    if (splitters.empty() || prefix > splitters.back()) {
      splitters.push_back(prefix);
    } else if (prefix == splitters.back() && prefix + 1 != 0) {
      splitters.push_back(prefix + 1);
    }
  }
  return splitters;
}

template <typename Parallel>
ConcatBlocks cut_blocks(
    const Parallel& parallel, const ConcatJob& job, bool single_prefix) {
  const int64_t inputs = job.inputs();
  ConcatBlocks blocks;
  blocks.inputs = inputs;
  uint64_t low = 0;
  uint64_t high = 1;
  if (!single_prefix) {
    low = ~uint64_t{0};
    high = 0;
    for (const ConcatSource& source : job.sources) {
      if (source.nnz > 0) {
        low = std::min(low, job.prefix(source, 0));
        high = std::max(high, job.prefix(source, source.nnz - 1));
      }
    }
    ++high;
  }
  blocks.first_prefix.push_back(low);
  if (!single_prefix) {
    for (uint64_t splitter : choose_splitters(job)) {
      if (splitter > low && splitter < high) {
        blocks.first_prefix.push_back(splitter);
      }
    }
  }
  blocks.first_prefix.push_back(high);
  const int64_t count = static_cast<int64_t>(blocks.first_prefix.size()) - 1;
  blocks.places.assign((count + 1) * inputs, 0);
  const auto place_input = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const ConcatSource& source = job.sources[i];
      int64_t place = 0;
      for (int64_t b = 1; b < count; ++b) {
        place = gallop(job, source, place, blocks.first_prefix[b]);
        blocks.places[b * inputs + i] = place;
      }
      blocks.places[count * inputs + i] = source.nnz;
    }
  };
  if (count > 1) {
    parallel.each_range(inputs, place_input);
  } else {
    place_input(0, inputs);
  }
  blocks.starts.resize(count + 1);
  for (int64_t b = 0; b <= count; ++b) {
    int64_t start = 0;
    for (int64_t i = 0; i < inputs; ++i) {
      start += blocks.places[b * inputs + i];
    }
    blocks.starts[b] = start;
  }
  return blocks;
}

}  // namespace tso
