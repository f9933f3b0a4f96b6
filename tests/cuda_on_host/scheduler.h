// Runs the threads of a CUDA grid as fibers on one CPU thread, in an order that
// the caller chooses.
#pragma once

#include <cstdint>
#include <string>

struct uint3 {
  unsigned x, y, z;
};

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1)
      : x(x), y(y), z(z) {}
};

namespace cuda_on_host {

// Where the running CUDA thread is. The scheduler alone writes it.
struct Position {
  uint3 thread;
  uint3 block;
  dim3 block_dim;
  dim3 grid_dim;
  unsigned thread_number;  // thread, counted along x, then y, then z
};
extern Position position;

// Calls kernel(arguments) once for each thread of the grid and returns when all
// have returned. Throws std::runtime_error where threads wait for others that
// never arrive.
void launch(
    dim3 grid, dim3 block, void (*kernel)(const void*), const void* arguments);

// ---- What a running CUDA thread may call ----

// A point where another thread of the block may take over: before and after an
// atomic.
void maybe_yield();

enum class Scope { kBlock, kWarp };

// Waits for the other members: all threads of the block, or the lanes of the
// warp in `lanes`. Members must come from the same place.
void meet(
    Scope scope,
    unsigned lanes,
    uint64_t value,
    const char* what,
    const char* file,
    int line);

// What a member (a thread number, or a lane) brought to the last meeting of the
// running thread; poison where there is no such member.
uint64_t brought_by(unsigned member);

// Ends the launch with an error: a rule of CUDA was broken.
[[noreturn]] void fail(const std::string& what, const char* file, int line);

// ---- The host's side ----

// Fills memory whose contents are undefined; with what, changes with the order.
void poison(void* memory, uint64_t bytes);

// A number below `limit` from the stream that also picks the order of threads;
// 0 in the forward order, limit - 1 in the reverse order.
uint64_t pick(uint64_t limit);

// What was asked of the device, to test what a call costs there.
struct Counts {
  int64_t launches;     // kernels
  int64_t device_wide;  // calls of device-wide algorithms (cub)
  int64_t transfers;    // memcpy and memset, to or within the device
  int64_t host_reads;   // copies to the host and waits for the device
  int64_t allocations;  // through torch's allocator
};
extern Counts counts;

}  // namespace cuda_on_host

extern "C" {
// Order 0: forward, 1: reverse, 2: shuffled by `seed`, with random yields at
// atomics. Grids are cut to `most_blocks` blocks along x, if that is not 0,
// which kernels whose loops step by the grid must not mind.
__attribute__((visibility("default"))) void cuda_on_host_set_order(
    int order, uint64_t seed, unsigned most_blocks);
// The counts since the last call.
__attribute__((visibility("default"))) void cuda_on_host_take_counts(
    int64_t result[5]);
}
