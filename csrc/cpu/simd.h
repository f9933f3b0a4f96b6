// Code compiled for several instruction sets, the best of which is picked when
// the library runs.
#pragma once

#include <cstdlib>
#include <cstring>

#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__)
#define TSO_SIMD_CLONES 1
#else
#define TSO_SIMD_CLONES 0
#endif

namespace tso {

// Whether to run the code compiled for AVX2. TORCH_SPARSE_OPS_SIMD=0 forbids
// it, which is how tests reach the portable code.
inline bool has_avx2() {
#if TSO_SIMD_CLONES
  static const bool has = [] {
    const char* allowed = std::getenv("TORCH_SPARSE_OPS_SIMD");
    __builtin_cpu_init();
    return (allowed == nullptr || std::strcmp(allowed, "0") != 0) &&
           __builtin_cpu_supports("avx2");
  }();
  return has;
#else
  return false;
#endif
}

#if TSO_SIMD_CLONES
template <typename F>
[[gnu::target("avx2"),
  gnu::flatten,
  gnu::noinline]] void call_avx2(const F& f) {
  f();
}
#endif

// Calls f, which is compiled once more for AVX2 with all that it calls: keep
// it small.
template <typename F>
void call_simd(const F& f) {
#if TSO_SIMD_CLONES
  if (has_avx2()) {
    call_avx2(f);
    return;
  }
#endif
  f();
}

}  // namespace tso
