// A stack of its own that the CPU can be switched to and from, and the
// sanitizers told about it. Included by scheduler.cpp only.
#pragma once

#include <sys/mman.h>
#include <ucontext.h>

#include <cstddef>
#include <stdexcept>
#include <string>

#if defined(CUDA_ON_HOST_ASAN)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#if defined(CUDA_ON_HOST_TSAN)
#include <sanitizer/tsan_interface.h>

extern "C" {
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
void AnnotateIgnoreWritesBegin(const char* file, int line);
void AnnotateIgnoreWritesEnd(const char* file, int line);
}
#endif

namespace cuda_on_host {

#if defined(CUDA_ON_HOST_TSAN) || defined(CUDA_ON_HOST_ASAN)
// Reports are written on the stack of the thread at fault.
constexpr size_t kStackBytes = 256 * 1024;
#else
constexpr size_t kStackBytes = 64 * 1024;
#endif
constexpr size_t kGuardBytes = 4096;

// Under ThreadSanitizer every CUDA thread is a thread of its own. Nothing
// orders them but what is said here: release and acquire.
class Identity {
 public:
#if defined(CUDA_ON_HOST_TSAN)
  static Identity of_caller() {
    return Identity(__tsan_get_current_fiber());
  }
  static Identity create() {
    return Identity(__tsan_create_fiber(0));
  }
  void set_name(unsigned block, unsigned thread) const {
    const std::string name =
        "block " + std::to_string(block) + " thread " + std::to_string(thread);
    __tsan_set_fiber_name(fiber_, name.c_str());
  }
  // What is done from now on is done by this thread.
  void assume() const {
    __tsan_switch_to_fiber(fiber_, __tsan_switch_to_fiber_no_sync);
  }
  // All that this thread did so far comes before what others do after they
  // acquire the same object.
  static void release(void* object) {
    __tsan_release(object);
  }
  static void acquire(void* object) {
    __tsan_acquire(object);
  }
  // What the calling thread does from now on is of no interest, or is again.
  static void ignore(bool yes) {
    if (yes) {
      AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
      AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
    } else {
      AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
      AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
    }
  }

 private:
  explicit Identity(void* fiber) : fiber_(fiber) {}
  void* fiber_;
#else
  static Identity of_caller() {
    return {};
  }
  static Identity create() {
    return {};
  }
  void set_name(unsigned, unsigned) const {}
  void assume() const {}
  static void release(void*) {}
  static void acquire(void*) {}
  static void ignore(bool) {}
#endif
};

class Fiber {
 public:
  // The fiber of the code that is running already: it brings its own stack.
  Fiber() : identity(Identity::of_caller()) {}

  explicit Fiber(void (*main)()) : identity(Identity::create()) {
    void* memory = mmap(
        nullptr, kStackBytes + kGuardBytes, PROT_READ | PROT_WRITE,
        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
      throw std::runtime_error("cuda_on_host: no memory for another stack");
    }
    mapping_ = static_cast<char*>(memory);
    mprotect(mapping_, kGuardBytes, PROT_NONE);
    bottom_ = mapping_ + kGuardBytes;
    bytes_ = kStackBytes;
    getcontext(&context_);
    context_.uc_stack.ss_sp = mapping_ + kGuardBytes;
    context_.uc_stack.ss_size = kStackBytes;
    context_.uc_link = nullptr;
    makecontext(&context_, main, 0);
  }

  ~Fiber() {
    if (mapping_ != nullptr) {
#if defined(CUDA_ON_HOST_ASAN)
      // A fiber that is dropped half-way leaves its frames marked.
      __asan_unpoison_memory_region(bottom_, bytes_);
#endif
      munmap(mapping_, kStackBytes + kGuardBytes);
    }
  }

  const Identity identity;

  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Runs `to` from where it left off, until something switches back to `from`.
  static void switch_to(Fiber& from, Fiber& to) {
#if defined(CUDA_ON_HOST_ASAN)
    __sanitizer_start_switch_fiber(&from.fake_stack_, to.bottom_, to.bytes_);
#endif
    previous_ = &from;
    swapcontext(&from.context_, &to.context_);
    arrived(from);
  }

  // To be called first by a fiber's main function.
  static void arrived(Fiber& here) {
#if defined(CUDA_ON_HOST_ASAN)
    __sanitizer_finish_switch_fiber(
        here.fake_stack_, &previous_->bottom_, &previous_->bytes_);
#else
    (void)here;
#endif
  }

 private:
  inline static Fiber* previous_ = nullptr;

  ucontext_t context_;
  char* mapping_ = nullptr;
  const void* bottom_ = nullptr;
  size_t bytes_ = 0;
  void* fake_stack_ = nullptr;
};

}  // namespace cuda_on_host
