// Work shared out to torch's threads.
#pragma once

#include <torch/csrc/stable/ops.h>

#include <atomic>
#include <cstdint>

namespace tso {

// Waking a second thread costs tens of microseconds, which is what moving this
// many bytes takes.
constexpr int64_t kSerialBytes = int64_t{1} << 18;

struct Parallel {
  int64_t threads;

  // At most as many threads as `bytes` of memory traffic are worth.
  static Parallel for_bytes(int64_t bytes) {
    return {
        bytes <= kSerialBytes
            ? 1
            : static_cast<int64_t>(torch::stable::get_num_threads())};
  }

  // Calls f(thread) once in each of `threads` threads. f must not throw.
  template <typename F>
  void each_thread(const F& f) const {
    if (threads <= 1) {
      f(int64_t{0});
      return;
    }
    torch::stable::parallel_for(0, threads, 1, [&](int64_t begin, int64_t end) {
      for (int64_t thread = begin; thread < end; ++thread) {
        f(thread);
      }
    });
  }

  // Calls f(task, scratch) for every task in [0, tasks), whichever thread is
  // free first; each thread has a Scratch of its own.
  template <typename Scratch, typename F>
  void each_task(int64_t tasks, const F& f) const {
    std::atomic<int64_t> next{0};
    const auto work = [&](int64_t) {
      Scratch scratch;
      for (int64_t task = next++; task < tasks; task = next++) {
        f(task, scratch);
      }
    };
    if (tasks <= 1) {
      work(0);
    } else {
      each_thread(work);
    }
  }

  // Calls f(begin, end) for one range a thread.
  template <typename F>
  void each_range(int64_t count, const F& f) const {
    each_thread([&](int64_t thread) {
      const int64_t share = (count + threads - 1) / threads;
      const int64_t begin = share * thread < count ? share * thread : count;
      const int64_t end = count - begin < share ? count : begin + share;
      if (begin < end) {
        f(begin, end);
      }
    });
  }
};

struct NoScratch {};

}  // namespace tso
