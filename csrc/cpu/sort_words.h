// Sorting words by the key in their upper bits.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "../common/index_math.h"

namespace tso {

// Words of a bucket: few enough for both of its copies to stay in the
// first-level cache.
constexpr int64_t kSortBucket = int64_t{1} << 11;
// Of buckets that fill unevenly.
constexpr int64_t kLargestInCache = 8 * kSortBucket;
// Digits of more bits have more ends to write to than the first-level cache
// has lines.
constexpr int kDigitBits = 11;

// The digit of a key that lies above a word's `shift` lower bits.
template <typename Word>
struct WordDigit {
  int shift;
  uint64_t mask;

  WordDigit(int low, int width)
      : shift(low), mask((uint64_t{1} << width) - 1) {}

  int64_t operator()(Word word) const {
    return static_cast<int64_t>(static_cast<uint64_t>(word >> shift) & mask);
  }
};

// Sorts `size` words by the bits of their keys that `varying` has, words with
// equal keys as they are. Least significant digit first, between two places;
// returns the one that holds the result.
template <typename Word>
Word* sort_bucket(
    Word* words,
    Word* room,
    int64_t size,
    int key_shift,
    uint64_t varying,
    std::vector<int64_t>& counts) {
  if (size < 2 || varying == 0) {
    return words;
  }
  const int top = bits(varying);
  const int low = bits(varying & (~varying + 1)) - 1;
  // Counting digits costs as much as dealing out that many words.
  const int most = std::min(bits(static_cast<uint64_t>(size)), kDigitBits);
  const int passes = (top - low + most - 1) / most;
  const int width = (top - low + passes - 1) / passes;
  for (int at = low; at < top; at += width) {
    const WordDigit<Word> digit(key_shift + at, width);
    if ((varying >> at & digit.mask) == 0) {
      continue;
    }
    counts.assign(int64_t{1} << width, 0);
    for (int64_t i = 0; i < size; ++i) {
      ++counts[digit(words[i])];
    }
    int64_t position = 0;
    for (int64_t& count : counts) {
      position += std::exchange(count, position);
    }
    int64_t* next = counts.data();
    for (int64_t i = 0; i < size; ++i) {
      room[next[digit(words[i])]++] = words[i];
    }
    std::swap(words, room);
  }
  return words;
}

// Writes words [begin, end) to where their bucket's share of `room` begins, in
// their order. A few at a time: pages to write to are more than the processor
// keeps the addresses of, and words alone take twice as long.
template <typename Word>
void deal_out(
    const Word* words,
    int64_t begin,
    int64_t end,
    const WordDigit<Word> digit,
    int64_t buckets,
    const int64_t* starts,
    Word* room) {
  constexpr uint64_t kFew = 64 / sizeof(Word);
  std::vector<Word> waiting(buckets * kFew);
  std::vector<uint64_t> dealt(buckets);
  Word* const few = waiting.data();
  uint64_t* const numbers = dealt.data();
  for (int64_t i = begin; i < end; ++i) {
    const Word word = words[i];
    const int64_t bucket = digit(word);
    const uint64_t number = numbers[bucket]++;
    few[bucket * kFew + number % kFew] = word;
    if (number % kFew == kFew - 1) {
      Word* const out = room + starts[bucket] + number + 1 - kFew;
      std::memcpy(out, few + bucket * kFew, sizeof(Word) * kFew);
      // Where the bucket's next few will end, which may lie past the room.
      __builtin_prefetch(
          reinterpret_cast<const char*>(
              reinterpret_cast<uintptr_t>(out) + 2 * sizeof(Word) * kFew - 1),
          1);
    }
  }
  for (int64_t bucket = 0; bucket < buckets; ++bucket) {
    const uint64_t rest = numbers[bucket] % kFew;
    std::copy_n(
        few + bucket * kFew, rest,
        room + starts[bucket] + numbers[bucket] - rest);
  }
}

// Sorts words by the bits of their keys that `varying` has (other bits are the
// same in all), words with equal keys as they are: deals them out by their
// first digit, and sorts the buckets, each alone. Calls take(begin, sorted,
// size) for every bucket, `begin` being its first word's place in the whole.
// Uses `words` and `room` up.
template <typename Word, typename Parallel, typename Take>
void sort_words(
    const Parallel& parallel,
    Word* words,
    Word* room,
    int64_t count,
    int key_shift,
    uint64_t varying,
    const Take& take) {
  struct Scratch {
    std::vector<int64_t> counts;
    std::vector<Word> room;
  };
  const int width = std::min(
      {bits(static_cast<uint64_t>(count / kSortBucket)), kDigitBits,
       bits(varying)});
  const int low = bits(varying) - width;
  const int64_t buckets = int64_t{1} << width;
  std::vector<int64_t> starts(buckets + 1, count);
  starts[0] = 0;
  if (width > 0) {
    const WordDigit<Word> digit(key_shift + low, width);
    const int64_t threads = parallel.threads;
    const int64_t share = (count + threads - 1) / threads;
    std::vector<int64_t> positions(threads * buckets);
    const auto each_share = [&](const auto& f) {
      parallel.each_thread([&](int64_t thread) {
        const int64_t begin = std::min(count, share * thread);
        const int64_t end = std::min(count, begin + share);
        f(positions.data() + thread * buckets, begin, end);
      });
    };
    each_share([&](int64_t* counts, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        ++counts[digit(words[i])];
      }
    });
    int64_t position = 0;
    for (int64_t bucket = 0; bucket < buckets; ++bucket) {
      starts[bucket] = position;
      for (int64_t thread = 0; thread < threads; ++thread) {
        int64_t& cell = positions[thread * buckets + bucket];
        position += std::exchange(cell, position);
      }
    }
    each_share([&](int64_t* next, int64_t begin, int64_t end) {
      deal_out(words, begin, end, digit, buckets, next, room);
    });
    std::swap(words, room);
  }
  const uint64_t rest = varying & ((uint64_t{1} << low) - 1);
  parallel.template each_task<Scratch>(
      buckets, [&](int64_t bucket, Scratch& scratch) {
        const int64_t begin = starts[bucket];
        const int64_t size = starts[bucket + 1] - begin;
        // The same room for every bucket stays in the cache.
        Word* other = room + begin;
        if (buckets > 1 && size <= kLargestInCache) {
          scratch.room.resize(kLargestInCache);
          other = scratch.room.data();
        }
        const Word* sorted = sort_bucket(
            words + begin, other, size, key_shift, rest, scratch.counts);
        take(begin, sorted, size);
      });
}

}  // namespace tso
