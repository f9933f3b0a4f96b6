// What the CUDA sources use of the CUDA runtime, for g++: the language's
// keywords, the launch, and the few functions that are called on the host.
// Whatever is not here is not allowed in csrc/cuda.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <tuple>
#include <utility>

#include "cuda_on_host/device.h"
#include "cuda_on_host/vector_types.h"
#include "scheduler.h"

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __grid_constant__
// Blocks run one at a time, so one copy is enough. A thread_local copy can be
// found, to be filled before each block; AddressSanitizer guards only a static.
#if defined(CUDA_ON_HOST_ASAN)
#define __shared__ static
#else
#define __shared__ static thread_local
#endif

enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorInvalidConfiguration = 9,
};

using cudaStream_t = struct CUstream_st*;

inline cudaError_t cuda_on_host_last_error = cudaSuccess;

inline cudaError_t cudaGetLastError() {
  return std::exchange(cuda_on_host_last_error, cudaSuccess);
}

inline const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "no error";
    case cudaErrorInvalidConfiguration:
      return "invalid configuration argument";
    default:
      return "invalid argument";
  }
}

// ---- Launch ----

struct cudaLaunchAttribute {};

struct cudaLaunchConfig_t {
  dim3 gridDim;
  dim3 blockDim;
  size_t dynamicSmemBytes = 0;
  cudaStream_t stream = nullptr;
  cudaLaunchAttribute* attrs = nullptr;
  unsigned numAttrs = 0;
};

template <typename... Parameters, typename... Arguments>
cudaError_t cudaLaunchKernelEx(
    const cudaLaunchConfig_t* config,
    void (*kernel)(Parameters...),
    Arguments&&... arguments) {
  static_assert((sizeof(Parameters) + ... + 0) <= 32764);
  const dim3 grid = config->gridDim;
  const dim3 block = config->blockDim;
  const auto inside = [](dim3 size, unsigned x, unsigned y, unsigned z) {
    return size.x - 1 < x && size.y - 1 < y && size.z - 1 < z;
  };
  if (!inside(grid, 0x7fffffff, 65535, 65535) ||
      !inside(block, 1024, 1024, 64) ||
      uint64_t{block.x} * block.y * block.z > 1024 ||
      config->dynamicSmemBytes != 0 || config->numAttrs != 0) {
    return cuda_on_host_last_error = cudaErrorInvalidConfiguration;
  }
  // Every thread gets its own copies of these.
  struct Call {
    void (*kernel)(Parameters...);
    std::tuple<Parameters...> arguments;
  };
  const Call call{kernel, {std::forward<Arguments>(arguments)...}};
  ++cuda_on_host::counts.launches;
  cuda_on_host::launch(
      grid, block,
      [](const void* given) {
        const Call& call = *static_cast<const Call*>(given);
        std::apply(call.kernel, call.arguments);
      },
      &call);
  return cudaSuccess;
}

// ---- Memory ----

enum cudaMemcpyKind {
  cudaMemcpyHostToHost = 0,
  cudaMemcpyHostToDevice = 1,
  cudaMemcpyDeviceToHost = 2,
  cudaMemcpyDeviceToDevice = 3,
};

inline cudaError_t cudaMemcpyAsync(
    void* to,
    const void* from,
    size_t bytes,
    cudaMemcpyKind kind,
    cudaStream_t = nullptr) {
  ++(kind == cudaMemcpyDeviceToHost ? cuda_on_host::counts.host_reads
                                    : cuda_on_host::counts.transfers);
  if (bytes > 0) {
    std::memcpy(to, from, bytes);
  }
  return cudaSuccess;
}

inline cudaError_t cudaMemsetAsync(
    void* to, int value, size_t bytes, cudaStream_t = nullptr) {
  ++cuda_on_host::counts.transfers;
  if (bytes > 0) {
    std::memset(to, value, bytes);
  }
  return cudaSuccess;
}

inline cudaError_t cudaStreamSynchronize(cudaStream_t) {
  ++cuda_on_host::counts.host_reads;
  return cudaSuccess;
}

// ---- The device: small, so that grid-stride loops do loop ----

enum cudaDeviceAttr {
  cudaDevAttrMultiProcessorCount = 16,
};

inline cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}

inline cudaError_t cudaDeviceGetAttribute(
    int* value, cudaDeviceAttr attribute, int device) {
  if (device != 0 || attribute != cudaDevAttrMultiProcessorCount) {
    return cuda_on_host_last_error = cudaErrorInvalidValue;
  }
  *value = 1;
  return cudaSuccess;
}
