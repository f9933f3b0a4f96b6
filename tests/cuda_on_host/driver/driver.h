// What the cases of all operators share: random numbers, device memory of which
// every byte counts, and what a failed check says.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "scheduler.h"

namespace driver {

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}

  // At least low and below high.
  int64_t between(int64_t low, int64_t high) {
    return low +
           static_cast<int64_t>(engine_() % static_cast<uint64_t>(high - low));
  }

  bool one_in(int64_t n) {
    return between(0, n) == 0;
  }

  template <typename T>
  T any_of(std::initializer_list<T> values) {
    return values.begin()[between(0, static_cast<int64_t>(values.size()))];
  }

 private:
  std::mt19937_64 engine_;
};

// Memory that ends where its last element does, so that AddressSanitizer sees
// the first byte past it. Starts `shift` bytes after a multiple of 16.
template <typename T>
class Memory {
 public:
  explicit Memory(int64_t count, int64_t shift = 0)
      : count_(count),
        base_(
            static_cast<char*>(
                std::malloc(static_cast<size_t>(count) * sizeof(T) + shift))),
        data_(reinterpret_cast<T*>(base_ + shift)) {
    cuda_on_host::poison(data_, bytes());
  }

  ~Memory() {
    std::free(base_);
  }

  Memory(Memory&& other) noexcept
      : count_(other.count_), base_(other.base_), data_(other.data_) {
    other.base_ = nullptr;
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  T* data() const {
    return data_;
  }
  int64_t count() const {
    return count_;
  }
  uint64_t bytes() const {
    return static_cast<uint64_t>(count_) * sizeof(T);
  }
  T& operator[](int64_t i) const {
    return data_[i];
  }

 private:
  int64_t count_;
  char* base_;
  T* data_;
};

inline void fill_randomly(Random& random, const Memory<char>& memory) {
  for (int64_t i = 0; i < memory.count(); ++i) {
    memory[i] = static_cast<char>(random.between(0, 256));
  }
}

template <typename... Parts>
void check(bool right, const Parts&... what) {
  if (!right) {
    std::ostringstream text;
    (text << ... << what);
    throw std::runtime_error(text.str());
  }
}

// Whether some cases are large, which takes long under ThreadSanitizer.
enum class Size { kSmall, kLarge };

// A limit for the number of entries or rows of one case.
inline int64_t some_count(Random& random, Size size) {
  if (size == Size::kLarge && random.one_in(20)) {
    return 40000;
  }
  return random.one_in(3) ? 100 : 3000;
}

// Each makes one random case and compares the kernels with a serial loop.
void check_concat(Random& random, Size size);
void check_reshape(Random& random, Size size);
void check_scatter(Random& random, Size size);

}  // namespace driver
