// One block of a grid: its threads, each on a fiber from where it first blocks,
// and the meetings at which they wait for one another.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <queue>
#include <string>
#include <utility>
#include <vector>

#include "fiber.h"
#include "scheduler.h"

namespace cuda_on_host {

struct Launch {
  dim3 grid;
  dim3 block;
  void (*kernel)(const void*);
  const void* arguments;
  // For Identity: released by every thread, acquired by the host.
  uint64_t end;
};

// Threads that wait, or have waited, for one another at one place.
struct Meeting {
  Scope scope;
  unsigned first;  // thread of the warp, or of the block
  unsigned lanes;
  const char* what;
  const char* file;
  int line;

  unsigned expected;
  unsigned arrived;
  unsigned holders;  // threads that may still ask what was brought
  std::vector<unsigned> waiting;
  std::vector<uint64_t> values;

  bool is_at(const Meeting& other) const;
};

struct Thread {
  unsigned number;
  Fiber* fiber;      // null before the start and after the end
  Meeting* meeting;  // waited for, or left last
};

class Block {
 public:
  Block(Launch& launch, uint3 index);
  ~Block();
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  void run();

  // Called by the running CUDA thread.
  void yield();
  void meet(Meeting wanted, uint64_t value);
  uint64_t brought_by(unsigned member) const;
  [[noreturn]] void stop(const std::string& message);

 private:
  static void fiber_main();
  void run_thread();
  bool start_next_on(Fiber* fiber);
  void enter(Thread& thread);
  void suspend();
  void make_runnable(Thread& thread);
  Meeting& join(Meeting& wanted, uint64_t value);
  void leave(Thread& thread);
  std::string who_waits() const;

  using Turn = std::pair<uint64_t, unsigned>;  // when, which thread

  Launch& launch_;
  const unsigned size_;
  std::vector<Thread> threads_;
  std::priority_queue<Turn, std::vector<Turn>, std::greater<Turn>> runnable_;
  uint64_t turns_ = 0;
  std::list<Meeting> meetings_;  // that have waiting threads or holders
  Thread* running_ = nullptr;
  unsigned finished_ = 0;
  std::string failure_;
  // For Identity: released by the scheduler, acquired by every thread.
  uint64_t begin_ = 0;
  Fiber scheduler_;
};

// To be called when a launch is over.
void reclaim_fibers();

}  // namespace cuda_on_host
