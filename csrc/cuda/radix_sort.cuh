// A stable sort of places by key, on the device.
#pragma once

#include <cuda_runtime.h>
#include <cub/device/device_radix_sort.cuh>

#include <cstdint>

#include "cuda/launch.cuh"

namespace tso {

// Sorts `count` places by bits [0, bits) of their keys; equal ones keep their
// order. Both lie in the first of two arrays of `count` elements to start with;
// the second arrays and `bytes` bytes of workspace are scratch.
template <typename Key, typename Place>
class RadixSort {
 public:
  RadixSort(int64_t count, int bits)
      : count_(static_cast<Place>(count)), bits_(bits) {
    run(nullptr, cudaStream_t{});
  }

  size_t bytes() const {
    return bytes_;
  }

  // Returns the sorted places, which lie in one of the two arrays.
  const Place* sort(
      Key* keys,
      Key* other_keys,
      Place* places,
      Place* other_places,
      void* workspace,
      cudaStream_t stream) {
    keys_ = cub::DoubleBuffer<Key>(keys, other_keys);
    places_ = cub::DoubleBuffer<Place>(places, other_places);
    run(workspace, stream);
    return places_.Current();
  }

 private:
  void run(void* workspace, cudaStream_t stream) {
    check_cuda(
        cub::DeviceRadixSort::SortPairs(
            workspace, bytes_, keys_, places_, count_, 0, bits_, stream));
  }

  Place count_;
  int bits_;
  size_t bytes_ = 0;
  cub::DoubleBuffer<Key> keys_;
  cub::DoubleBuffer<Place> places_;
};

}  // namespace tso
