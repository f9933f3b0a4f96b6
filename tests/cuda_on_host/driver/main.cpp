// Runs the kernels of csrc/cuda on random cases, without torch, to be compiled
// with sanitizers.
//
//   driver CASES small|large [SEED]
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include "driver/driver.h"

namespace {

struct Operator {
  const char* name;
  void (*check)(driver::Random&, driver::Size);
};

constexpr Operator kOperators[] = {
    {"concat", driver::check_concat},
    {"reshape", driver::check_reshape},
    {"scatter", driver::check_scatter},
};

}  // namespace

int main(int argc, char** argv) {
  const std::string size = argc >= 3 ? argv[2] : "";
  if (argc < 3 || argc > 4 || (size != "small" && size != "large")) {
    std::fprintf(stderr, "usage: driver CASES small|large [SEED]\n");
    return 2;
  }
  const int cases = std::atoi(argv[1]);
  const uint64_t first = argc == 4 ? std::strtoull(argv[3], nullptr, 10) : 0;
  for (const Operator& op : kOperators) {
    const auto begin = std::chrono::steady_clock::now();
    for (uint64_t seed = first; seed < first + cases; ++seed) {
      // Forward, reverse, and then shuffles, mostly on few blocks.
      const int order = static_cast<int>(seed < 2 ? seed : 2);
      const unsigned blocks = size == "small" ? 1 + seed % 3 : seed % 4;
      cuda_on_host_set_order(order, seed, blocks);
      driver::Random random(seed);
      try {
        op.check(
            random,
            size == "small" ? driver::Size::kSmall : driver::Size::kLarge);
      } catch (const std::exception& error) {
        std::printf(
            "%s, seed %llu: %s\n", op.name,
            static_cast<unsigned long long>(seed), error.what());
        return 1;
      }
    }
    const std::chrono::duration<double> seconds =
        std::chrono::steady_clock::now() - begin;
    std::printf("%s: %d cases, %.1f s\n", op.name, cases, seconds.count());
    std::fflush(stdout);
  }
  return 0;
}
