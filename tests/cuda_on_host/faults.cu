// Small kernels, most of them right in one build and wrong in the other, to
// show that running CUDA on the host tells the two apart.
//
//   faults NAME    runs one kernel in several orders of threads; the exit
//                  status is 0 when it was right in all, 1 when it was not
//
// FAULTY=1 seeds the faults.
#include <cuda_runtime.h>
#include <cub/device/device_radix_sort.cuh>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#ifndef FAULTY
#define FAULTY 0
#endif

namespace {

constexpr int kThreads = 64;
constexpr int kBlocks = 3;

template <typename... Parameters, typename... Arguments>
void launch(
    int blocks, void (*kernel)(Parameters...), const Arguments&... arguments) {
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(blocks));
  config.blockDim = dim3(kThreads);
  if (cudaLaunchKernelEx(&config, kernel, arguments...) != cudaSuccess) {
    throw std::runtime_error(cudaGetErrorString(cudaGetLastError()));
  }
}

// ---- The last row to name a slot wins it ----

constexpr int kRows = kThreads * kBlocks;
constexpr int kSlots = 7;

static __global__ void pick_winner_kernel(int* winner) {
  const int row = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
#if FAULTY
  winner[row % kSlots] = row;
#else
  atomicMax(&winner[row % kSlots], row);
#endif
}

static __global__ void compare_winner_kernel(int* winner) {
  const int row = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
#if FAULTY
  // Right in any order of whole threads: only ThreadSanitizer can tell.
  if (winner[row % kSlots] < row) {
    winner[row % kSlots] = row;
  }
#else
  atomicMax(&winner[row % kSlots], row);
#endif
}

bool last_wins(void (*kernel)(int*)) {
  std::vector<int> winner(kSlots, -1);
  launch(kBlocks, kernel, winner.data());
  bool right = true;
  for (int slot = 0; slot < kSlots; ++slot) {
    right &= winner[slot] == (kRows - 1 - slot) / kSlots * kSlots + slot;
  }
  return right;
}

// ---- Each block reverses its part through shared memory ----

static __global__ void reverse_kernel(const int* in, int* out) {
  __shared__ int part[kThreads];
  const unsigned first = blockIdx.x * kThreads;
  part[threadIdx.x] = in[first + threadIdx.x];
#if !FAULTY
  __syncthreads();
#endif
  out[first + threadIdx.x] = part[kThreads - 1 - threadIdx.x];
}

bool barrier() {
  std::vector<int> in(kRows);
  std::vector<int> out(kRows);
  for (int i = 0; i < kRows; ++i) {
    in[i] = i * i;
  }
  launch(kBlocks, reverse_kernel, in.data(), out.data());
  bool right = true;
  for (int i = 0; i < kRows; ++i) {
    right &=
        out[i] == in[i / kThreads * kThreads + kThreads - 1 - i % kThreads];
  }
  return right;
}

// ---- A barrier that only some threads reach ----

static __global__ void halves_kernel(int* out) {
  if (threadIdx.x < 10) {
    out[threadIdx.x] = 1;
#if FAULTY
    __syncthreads();
#endif
  }
#if !FAULTY
  __syncthreads();
#endif
}

bool divergence() {
  std::vector<int> out(10);
  launch(1, halves_kernel, out.data());
  return true;
}

// ---- Bounds: of device memory and of shared memory ----

static __global__ void fill_kernel(int* out, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n + FAULTY) {
    out[i] = i;
  }
}

bool past_the_end() {
  const int n = kRows - 5;
  std::vector<int> out(n);
  launch(kBlocks, fill_kernel, out.data(), n);
  return out[n - 1] == n - 1;
}

static __global__ void shift_kernel(int* out) {
  __shared__ int part[kThreads + 1 - FAULTY];
  int* place = part + threadIdx.x + 1;
  *place = static_cast<int>(threadIdx.x);
  __syncthreads();
  out[threadIdx.x] = *place;
}

bool past_the_end_of_shared() {
  std::vector<int> out(kThreads);
  launch(1, shift_kernel, out.data());
  return out[5] == 5;
}

// ---- Shared memory starts out undefined ----

static __global__ void count_kernel(int* out) {
  __shared__ int count;
#if !FAULTY
  if (threadIdx.x == 0) {
    count = 0;
  }
  __syncthreads();
#endif
  atomicAdd(&count, 1);
  __syncthreads();
  if (threadIdx.x == 0) {
    out[blockIdx.x] = count;
  }
}

bool uninitialised() {
  std::vector<int> out(kBlocks);
  launch(kBlocks, count_kernel, out.data());
  return out[0] == kThreads && out[1] == kThreads && out[2] == kThreads;
}

// ---- Sum of a block by warp shuffles ----

static __global__ void sum_kernel(const int* in, int* out) {
  __shared__ int sums[kThreads / 32];
  const unsigned lane = threadIdx.x % 32;
  int sum = in[blockIdx.x * kThreads + threadIdx.x];
  for (int delta = 16; delta > 0; delta /= 2) {
#if FAULTY
    // Lanes that have their result already do not take part.
    if (lane >= static_cast<unsigned>(2 * delta)) {
      break;
    }
#endif
    sum += __shfl_down_sync(0xffffffffu, sum, static_cast<unsigned>(delta));
  }
  if (lane == 0) {
    sums[threadIdx.x / 32] = sum;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    out[blockIdx.x] = sums[0] + sums[1];
  }
}

bool shuffle() {
  std::vector<int> in(kRows);
  std::vector<int> out(kBlocks);
  std::vector<int> sums(kBlocks);
  for (int i = 0; i < kRows; ++i) {
    in[i] = 3 * i + 1;
    sums[i / kThreads] += in[i];
  }
  launch(kBlocks, sum_kernel, in.data(), out.data());
  return out == sums;
}

// ---- Every primitive, with a last warp of 20 lanes ----

constexpr int kPartial = 2 * 32 + 20;

struct Seen {
  int barrier[3];
  unsigned ballot;
  int index, up, up_in_8, down;
  long long exchanged;
  double from_first;
};

static __global__ void primitives_kernel(Seen* out, unsigned* sums) {
  const int i = static_cast<int>(threadIdx.x + blockDim.x * threadIdx.y);
  const unsigned all = 0xffffffffu;
  Seen& seen = out[i];
  seen.barrier[0] = __syncthreads_count(i % 3 == 0);
  seen.barrier[1] = __syncthreads_or(i == 70);
  seen.barrier[2] = __syncthreads_and(i != 70);
  seen.ballot = __ballot_sync(all, i % 5 == 0);
  seen.index = __shfl_sync(all, i, 3, 4);
  seen.up = __shfl_up_sync(all, i, 1);
  seen.up_in_8 = __shfl_up_sync(all, i, 2, 8);
  seen.down = __shfl_down_sync(all, i, 4, 16);
  seen.exchanged = __shfl_xor_sync(all, i * 1000000007ll, 1);
  seen.from_first = __shfl_sync(all, i * 0.5, 0);
  if (i % 2 == 0) {
    __syncwarp(0x55555555u);
  }
  atomicAdd(&sums[0], static_cast<unsigned>(i));
  atomicMin(reinterpret_cast<int*>(&sums[1]), -i);
  if (atomicExch(&sums[2], 1u) == 0) {
    sums[3] = 1;
  }
}

bool primitives() {
  std::vector<Seen> seen(kPartial);
  std::vector<unsigned> sums(4);
  cudaLaunchConfig_t config{};
  config.blockDim = dim3(7, kPartial / 7);
  if (cudaLaunchKernelEx(
          &config, primitives_kernel, seen.data(), sums.data()) !=
      cudaSuccess) {
    return false;
  }
  bool right = sums[0] == kPartial * (kPartial - 1) / 2 &&
               static_cast<int>(sums[1]) == 1 - kPartial && sums[3] == 1;
  for (int i = 0; i < kPartial; ++i) {
    const int lane = i % 32;
    const int first = i - lane;
    unsigned ballot = 0;
    for (int j = first; j < first + 32 && j < kPartial; ++j) {
      ballot |= j % 5 == 0 ? 1u << (j - first) : 0;
    }
    const Seen& s = seen[i];
    right &= s.barrier[0] == kPartial / 3 && s.barrier[1] == 1 &&
             s.barrier[2] == 0 && s.ballot == ballot &&
             s.index == i / 4 * 4 + 3 && s.up == (lane == 0 ? i : i - 1) &&
             s.up_in_8 == (i % 8 < 2 ? i : i - 2) &&
             s.exchanged == (i ^ 1) * 1000000007ll &&
             s.from_first == first * 0.5;
    // Lanes that do not exist have nothing to give.
    right &= i % 16 >= 12       ? s.down == i
             : i + 4 < kPartial ? s.down == i + 4
                                : s.down != i + 4;
  }
  return right && __popc(0xf0u) == 4 && __popcll(~0ull) == 64 &&
         __clz(1) == 31 && __clz(0) == 32 && __clzll(1) == 63 &&
         __ffs(8) == 4 && __ffsll(0) == 0 && __umulhi(1u << 31, 6) == 3 &&
         __umul64hi(1ull << 63, 6) == 3;
}

// ---- What the runtime refuses ----

static __global__ void nothing_kernel() {}

bool refused(dim3 grid, dim3 block) {
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = block;
  return cudaLaunchKernelEx(&config, nothing_kernel) ==
             cudaErrorInvalidConfiguration &&
         cudaGetLastError() == cudaErrorInvalidConfiguration &&
         cudaGetLastError() == cudaSuccess;
}

bool refusals() {
  return refused(dim3(0), dim3(1)) && refused(dim3(1), dim3(0)) &&
         refused(dim3(1, 65536), dim3(1)) && refused(dim3(1), dim3(1025)) &&
         refused(dim3(1), dim3(32, 33)) && !refused(dim3(1), dim3(32, 32));
}

// ---- A sort between two buffers leaves its result in either ----

bool double_buffer() {
  std::vector<uint32_t> keys{5, 3, 4, 1};
  std::vector<uint32_t> other_keys(4);
  std::vector<int> values{0, 1, 2, 3};
  std::vector<int> other_values(4);
  cub::DoubleBuffer<uint32_t> k(keys.data(), other_keys.data());
  cub::DoubleBuffer<int> v(values.data(), other_values.data());
  size_t bytes = 0;
  cub::DeviceRadixSort::SortPairs(nullptr, bytes, k, v, 4, 0, 2);
  std::vector<char> workspace(bytes);
  cub::DeviceRadixSort::SortPairs(workspace.data(), bytes, k, v, 4, 0, 2);
  // By the two lowest bits alone, and stable.
  const std::vector<int> wanted{2, 0, 3, 1};
  const int* result = FAULTY ? values.data() : v.Current();
  return std::memcmp(result, wanted.data(), 4 * sizeof(int)) == 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string, std::function<bool()>> kernels = {
      {"last_wins", [] { return last_wins(pick_winner_kernel); }},
      {"check_then_act", [] { return last_wins(compare_winner_kernel); }},
      {"barrier", barrier},
      {"divergence", divergence},
      {"past_the_end", past_the_end},
      {"past_the_end_of_shared", past_the_end_of_shared},
      {"uninitialised", uninitialised},
      {"shuffle", shuffle},
      {"double_buffer", double_buffer},
      {"primitives", primitives},
      {"refusals", refusals},
  };
  const auto kernel = kernels.find(argc == 2 ? argv[1] : "");
  if (kernel == kernels.end()) {
    std::fprintf(stderr, "usage: faults NAME\n");
    return 2;
  }
  bool right = true;
  try {
    for (int order = 0; order < 6; ++order) {
      cuda_on_host_set_order(order < 2 ? order : 2, order, 0);
      const bool now = kernel->second();
      std::printf("order %d: %s\n", order, now ? "right" : "wrong");
      right &= now;
    }
  } catch (const std::exception& error) {
    std::printf("%s\n", error.what());
    return 1;
  }
  return right ? 0 : 1;
}
