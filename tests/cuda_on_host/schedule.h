// The order of threads that was asked for.
#pragma once

#include <cstdint>

namespace cuda_on_host {

enum class Order { kForward, kReverse, kShuffled };

struct Schedule {
  Order order = Order::kForward;
  uint64_t state = 0;
  unsigned most_blocks = 0;

  uint64_t random();
};
extern Schedule schedule;

}  // namespace cuda_on_host
