// How kernels are launched: every launch goes through launch(), every loop is a
// grid-stride loop over 64-bit numbers, so any grid is right for any size.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <stdexcept>
#include <string>

namespace tso {

constexpr int kThreads = 256;

// What one thread has in flight: loads are issued kItems at a time, kThreads
// apart, before the first of them is used.
constexpr int kItems = 4;
constexpr int kTile = kThreads * kItems;

// Blocks of 256 threads that fill a multiprocessor four times over, which evens
// out blocks that take longer than others.
constexpr int64_t kBlocksPerMultiprocessor = 32;

inline void check_cuda(cudaError_t error) {
  if (error != cudaSuccess) {
    (void)cudaGetLastError();
    throw std::runtime_error(
        std::string("torch_sparse_ops: CUDA error: ") +
        cudaGetErrorString(error));
  }
}

// Blocks for `work` items of which a block does `per_block` at a time.
inline unsigned grid_size(int64_t work, int64_t per_block) {
  int device = 0;
  int multiprocessors = 0;
  check_cuda(cudaGetDevice(&device));
  check_cuda(cudaDeviceGetAttribute(
      &multiprocessors, cudaDevAttrMultiProcessorCount, device));
  const int64_t blocks = (work + per_block - 1) / per_block;
  const int64_t most = multiprocessors * kBlocksPerMultiprocessor;
  return static_cast<unsigned>(blocks < most ? blocks : most);
}

// Runs the kernel on as many blocks as `work` items need; none for no work.
template <typename... Parameters, typename... Arguments>
void launch(
    cudaStream_t stream,
    int64_t work,
    int64_t per_block,
    void (*kernel)(Parameters...),
    const Arguments&... arguments) {
  if (work <= 0) {
    return;
  }
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(grid_size(work, per_block));
  config.blockDim = dim3(kThreads);
  config.stream = stream;
  check_cuda(cudaLaunchKernelEx(
      &config, kernel, static_cast<Parameters>(arguments)...));
}

// for (int64_t i = grid_index(); i < count; i += grid_stride())
__device__ __forceinline__ int64_t grid_index() {
  return static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
}

__device__ __forceinline__ int64_t grid_stride() {
  return static_cast<int64_t>(gridDim.x) * kThreads;
}

}  // namespace tso
