// In which order things happen, what undefined memory holds, what was counted.
#include "schedule.h"

#include <cstring>

#include "scheduler.h"

namespace cuda_on_host {

Counts counts;
Schedule schedule;

// splitmix64
uint64_t Schedule::random() {
  uint64_t z = (state += 0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

uint64_t pick(uint64_t limit) {
  switch (schedule.order) {
    case Order::kForward:
      return 0;
    case Order::kReverse:
      return limit - 1;
    default:
      return schedule.random() % limit;
  }
}

void poison(void* memory, uint64_t bytes) {
  if (bytes == 0) {
    return;
  }
  int byte = 0xa5;
  if (schedule.order == Order::kReverse) {
    byte = 0x5a;
  } else if (schedule.order == Order::kShuffled) {
    // Neither 0 nor -1: both are good starting values in many a kernel.
    byte = static_cast<int>(1 + schedule.random() % 254);
  }
  std::memset(memory, byte, bytes);
}

}  // namespace cuda_on_host

void cuda_on_host_set_order(int order, uint64_t seed, unsigned most_blocks) {
  using namespace cuda_on_host;
  schedule = {static_cast<Order>(order), seed, most_blocks};
}

void cuda_on_host_take_counts(int64_t result[5]) {
  using cuda_on_host::counts;
  result[0] = counts.launches;
  result[1] = counts.device_wide;
  result[2] = counts.transfers;
  result[3] = counts.host_reads;
  result[4] = counts.allocations;
  counts = {};
}
