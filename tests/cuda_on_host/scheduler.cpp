#include "scheduler.h"

#include <link.h>

#include <algorithm>
#include <exception>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "block.h"
#include "schedule.h"

namespace cuda_on_host {

Position position;

namespace {

// Libraries get their thread-local memory when a thread first touches it.
thread_local volatile char touched;

// __shared__ variables are the only thread-local ones here, so all the
// thread-local memory of this library (or program) is filled.
int poison_thread_locals(dl_phdr_info* info, size_t, void*) {
  const ElfW(Addr) here = reinterpret_cast<ElfW(Addr)>(&position);
  bool ours = false;
  size_t bytes = 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& part = info->dlpi_phdr[i];
    const ElfW(Addr) begin = info->dlpi_addr + part.p_vaddr;
    ours |=
        part.p_type == PT_LOAD && here >= begin && here < begin + part.p_memsz;
    bytes = part.p_type == PT_TLS ? part.p_memsz : bytes;
  }
  if (ours) {
    poison(info->dlpi_tls_data, bytes);
  }
  return ours;
}

// For ThreadSanitizer, shared memory must not pass from one block to another.
#if defined(CUDA_ON_HOST_TSAN)
constexpr bool kShareSharedMemory = false;
#else
constexpr bool kShareSharedMemory = true;
#endif

// It takes 800 kB for each thread.
constexpr uint64_t kMostIdentities = 2000;

void run_block(Launch& launch, uint3 index) {
  touched = 0;
  dl_iterate_phdr(poison_thread_locals, nullptr);
  Block block(launch, index);
  block.run();
}

// A new thread has shared memory that no block has used before. What it does is
// to schedule, on the stacks of CUDA threads too, where ThreadSanitizer would
// take it for a race with them.
void run_block_on_new_thread(Launch& launch, uint3 index) {
  std::exception_ptr failure;
  std::thread([&] {
    Identity::ignore(true);
    try {
      run_block(launch, index);
    } catch (...) {
      failure = std::current_exception();
    }
    Identity::ignore(false);
  }).join();
  if (failure) {
    std::rethrow_exception(failure);
  }
}

std::vector<uint64_t> order_of_blocks(uint64_t blocks) {
  std::vector<uint64_t> order(blocks);
  for (uint64_t i = 0; i < blocks; ++i) {
    order[i] = schedule.order == Order::kReverse ? blocks - 1 - i : i;
    if (schedule.order == Order::kShuffled) {
      std::swap(order[i], order[pick(i + 1)]);
    }
  }
  return order;
}

}  // namespace

void launch(
    dim3 grid, dim3 block, void (*kernel)(const void*), const void* arguments) {
  if (schedule.most_blocks > 0) {
    grid.x = std::min(grid.x, schedule.most_blocks);
  }
  const uint64_t threads =
      uint64_t{grid.x} * grid.y * grid.z * block.x * block.y * block.z;
  if (!kShareSharedMemory && threads > kMostIdentities) {
    throw std::runtime_error(
        "cuda_on_host: " + std::to_string(threads) +
        " threads are too many for ThreadSanitizer");
  }
  Launch launch{grid, block, kernel, arguments, 0};
  position.grid_dim = grid;
  position.block_dim = block;
  const uint64_t plane = uint64_t{grid.x} * grid.y;
  for (uint64_t i : order_of_blocks(plane * grid.z)) {
    const uint3 index{
        static_cast<unsigned>(i % grid.x),
        static_cast<unsigned>(i % plane / grid.x),
        static_cast<unsigned>(i / plane)};
    if (kShareSharedMemory) {
      run_block(launch, index);
    } else {
      run_block_on_new_thread(launch, index);
    }
  }
  Identity::acquire(&launch.end);
  reclaim_fibers();
}

}  // namespace cuda_on_host
