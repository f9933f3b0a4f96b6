// The way for inputs that are not sorted: sort all entries by their place in the
// result, and move each to its place. Takes room for two words an entry.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

#include "../common/index_math.h"
#include "columns.h"
#include "concat_blocks.h"
#include "concat_move.h"
#include "concat_places.h"
#include "concat_scratch.h"
#include "inspect.h"
#include "simd.h"
#include "sort_words.h"
#include "sparse_concat_kernel.h"

namespace tso {

// What the numbers of entries, in the result, have in common.
struct ConcatKeys {
  std::atomic<int64_t> bad{0};  // sign: an entry is out of bounds
  std::atomic<uint64_t> any{0};
  std::atomic<uint64_t> all{~uint64_t{0}};

  uint64_t varying() const {
    return any & ~all;
  }
};

// The sort of one job. A word is the number of an entry's coordinates in the
// result above a reference to the entry. The references of equal coordinates
// increase as they should stand, so the sort is stable.
template <typename Word, int kBytes, ConcatDirection kDirection>
struct ConcatSort {
  ConcatMove<kBytes, kDirection> move;
  ConcatReference reference;

  static constexpr bool kForward = kDirection == ConcatDirection::kForward;

  // False if an entry is out of bounds.
  template <typename Parallel>
  bool run(const Parallel& parallel) const {
    const ConcatJob& job = move.job;
    Room<Word> words;
    Room<Word> room;
    words.grow(job.total);
    room.grow(job.total);
    ConcatKeys keys;
    parallel.each_range(job.total, [&](int64_t begin, int64_t end) {
      make_words(begin, end, words.data(), keys);
    });
    if (keys.bad < 0) {
      return false;
    }
    std::vector<Divider> dividers;
    for (int64_t d = 0; d < job.rank; ++d) {
      dividers.push_back(make_divider(job.out_shape[d]));
    }
    sort_words(
        parallel, words.data(), room.data(), job.total, reference.width(),
        keys.varying(), [&](int64_t begin, const Word* sorted, int64_t size) {
          if (move.moves_indices()) {
            write_indices(dividers, sorted, begin, size);
          }
          if (job.width > 0) {
            move_values(sorted, begin, size);
          }
        });
    return true;
  }

 private:
  // Of entries [begin, end) of all inputs end to end.
  void make_words(
      int64_t begin, int64_t end, Word* words, ConcatKeys& keys) const {
    const ConcatJob& job = move.job;
    int64_t numbers[kColumnBlock];
    int64_t copies[kColumnBlock];
    Findings findings;
    uint64_t any = 0;
    uint64_t all = ~uint64_t{0};
    int64_t start = 0;
    for (int64_t i = 0; i < job.inputs() && start < end; ++i) {
      const ConcatSource& source = job.sources[i];
      const int64_t last = std::min(end - start, source.nnz);
      const Word input = static_cast<Word>(i) << reference.place_bits;
      for (int64_t place = std::max<int64_t>(begin - start, 0); place < last;
           place += kColumnBlock) {
        const int64_t some = std::min(kColumnBlock, last - place);
        call_simd([&] {
          number_entries(source, place, some, copies, numbers, findings);
          uint64_t some_any = 0;  // local, to be held in registers
          uint64_t some_all = ~uint64_t{0};
          for (int64_t j = 0; j < some; ++j) {
            some_any |= static_cast<uint64_t>(numbers[j]);
            some_all &= static_cast<uint64_t>(numbers[j]);
          }
          any |= some_any;
          all &= some_all;
        });
        for (int64_t j = 0; j < some; ++j) {
          words[start + place + j] =
              (static_cast<Word>(static_cast<uint64_t>(numbers[j]))
               << reference.width()) +
              input + static_cast<Word>(place + j);
        }
      }
      start += source.nnz;
    }
    keys.bad.fetch_or(findings.bad);
    keys.any.fetch_or(any);
    keys.all.fetch_and(all);
  }

  // The numbers of coordinates in the result, meaningless if out of bounds.
  void number_entries(
      const ConcatSource& source,
      int64_t place,
      int64_t count,
      int64_t* copies,
      int64_t* numbers,
      Findings& findings) const {
    const ConcatJob& job = move.job;
    for (int64_t d = 0; d < job.rank; ++d) {
      const int64_t* found = column(source.indices, d, place, count, copies);
      const int64_t add = move.offset(source, d);
      inspect_bounds(found, source.shape[d], count, findings);
      if (d == 0) {
        for (int64_t j = 0; j < count; ++j) {
          numbers[j] = multiply_add(found[j], 1, add);
        }
        continue;
      }
      for (int64_t j = 0; j < count; ++j) {
        numbers[j] = multiply_add(
            numbers[j], job.out_shape[d], multiply_add(found[j], 1, add));
      }
    }
  }

  // Dividing the sorted numbers beats fetching the coordinates, which lie
  // scattered.
  void write_indices(
      const std::vector<Divider>& dividers,
      const Word* sorted,
      int64_t begin,
      int64_t size) const {
    uint64_t numbers[kColumnBlock];
    for (int64_t at = 0; at < size; at += kColumnBlock) {
      const int64_t some = std::min(kColumnBlock, size - at);
      for (int64_t j = 0; j < some; ++j) {
        numbers[j] = static_cast<uint64_t>(sorted[at + j] >> reference.width());
      }
      for (int64_t d = move.job.rank - 1; d > 0; --d) {
        const Divider divider = dividers[d];
        int64_t* out = move.out_column(d) + begin + at;
        for (int64_t j = 0; j < some; ++j) {
          const int64_t number = static_cast<int64_t>(numbers[j]);
          const int64_t quotient = divider.quotient(number);
          out[j] = number - quotient * divider.divisor;
          numbers[j] = static_cast<uint64_t>(quotient);
        }
      }
      std::copy_n(numbers, some, move.out_column(0) + begin + at);
    }
  }

  void move_values(const Word* sorted, int64_t begin, int64_t size) const {
    // Local, so that the stores below cannot change them.
    const ConcatReference reference = this->reference;
    const ConcatSource* const sources = move.job.sources.data();
    const int64_t width = move.job.width;
    char* const values = move.job.out_values + begin * width;
    const uint64_t places = (uint64_t{1} << reference.place_bits) - 1;
    const uint64_t inputs = (uint64_t{1} << reference.input_bits) - 1;
    for (int64_t n = 0; n < size; ++n) {
      const uint64_t low = static_cast<uint64_t>(sorted[n]);
      char* const found = sources[low >> reference.place_bits & inputs].values;
      const int64_t place = static_cast<int64_t>(low & places);
      if constexpr (kForward) {
        move_element<kBytes>(values, n, found, place, width);
      } else {
        move_element<kBytes>(found, place, values, n, width);
      }
    }
  }
};

// Does the whole job, whatever the order of the inputs. False if an entry is out
// of bounds; nothing is written then.
template <ConcatDirection kDirection, typename Parallel>
bool sort_concat(const Parallel& parallel, const ConcatJob& job) {
  int64_t most = 1;
  uint64_t elements = 1;
  for (const ConcatSource& source : job.sources) {
    most = std::max(most, source.nnz);
  }
  for (int64_t d = 0; d < job.rank; ++d) {
    elements *= static_cast<uint64_t>(job.out_shape[d]);
  }
  const ConcatReference reference(job.inputs(), most);
  bool valid = false;
  dispatch_width(job.width, [&](auto width) {
    if (bits(elements - 1) + reference.width() <= 64) {
      valid = ConcatSort<uint64_t, width(), kDirection>{{job}, reference}.run(
          parallel);
    } else {
      valid =
          ConcatSort<unsigned __int128, width(), kDirection>{{job}, reference}
              .run(parallel);
    }
  });
  return valid;
}

// What a sorted copy of an input costs on top of its entries, in entries.
constexpr int64_t kSortedCopy = int64_t{1} << 12;

// Which inputs are out of order or of bounds.
template <typename Parallel>
std::vector<char> find_unsorted(
    const Parallel& parallel, const ConcatJob& job) {
  std::vector<char> unsorted(job.sources.size());
  parallel.template each_task<ConcatScratch>(
      job.inputs(), [&](int64_t i, ConcatScratch& scratch) {
        const ConcatSource& source = job.sources[i];
        scratch.findings = {};
        for (int64_t place = 0; place < source.nnz && !unsorted[i];
             place += kColumnBlock) {
          const int64_t some = std::min(kColumnBlock, source.nnz - place);
          unsorted[i] =
              inspect_entries(job, source, place, some, scratch) == nullptr;
        }
      });
  return unsorted;
}

// Does a job that run_concat could not. False if an entry is out of bounds, or
// if inputs change meanwhile.
template <ConcatDirection kDirection, typename Parallel>
bool concat_unsorted(const Parallel& parallel, const ConcatJob& job) {
  constexpr bool kForward = kDirection == ConcatDirection::kForward;
  const std::vector<char> unsorted = find_unsorted(parallel, job);
  int64_t cost = 0;
  for (int64_t i = 0; i < job.inputs(); ++i) {
    cost += unsorted[i] ? 2 * job.sources[i].nnz + kSortedCopy : 0;
  }
  if (cost >= job.total) {
    return sort_concat<kDirection>(parallel, job);
  }
  // With sorted copies of few inputs, the job takes less than half of the time.
  struct Copy {
    ConcatJob job;  // of this input alone
    Room<int64_t> indices;
    Room<char> values;
  };
  std::vector<Copy> copies;
  ConcatJob sorted = job;
  for (int64_t i = 0; i < job.inputs(); ++i) {
    if (!unsorted[i]) {
      continue;
    }
    ConcatSource source = job.sources[i];
    Copy copy;
    copy.indices.grow(job.rank * source.nnz);
    copy.values.grow(source.nnz * job.width + 1);
    sorted.sources[i].indices = {copy.indices.data(), 1, source.nnz};
    sorted.sources[i].values = copy.values.data();
    source.offset = 0;
    copy.job = {job.rank,           job.axis, source.nnz,
                source.shape,       {source}, copy.indices.data(),
                copy.values.data(), job.width};
    // The transpose has no values to copy yet.
    ConcatJob first = copy.job;
    first.width = kForward ? job.width : 0;
    if (!sort_concat<ConcatDirection::kForward>(parallel, first)) {
      return false;
    }
    copies.push_back(std::move(copy));
  }
  bool valid = run_concat<kDirection>(parallel, sorted).bad >= 0;
  for (Copy& copy : copies) {
    if (!kForward) {
      copy.job.out_indices = nullptr;
      valid = valid && sort_concat<kDirection>(parallel, copy.job);
    }
  }
  return valid;
}

}  // namespace tso
