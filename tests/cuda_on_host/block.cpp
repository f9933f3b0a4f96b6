#include "block.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <stdexcept>

#include "schedule.h"

namespace cuda_on_host {

namespace {

constexpr unsigned kWarpSize = 32;

#if defined(CUDA_ON_HOST_TSAN)
// ThreadSanitizer remembers which thread touched an address, so no stack may
// pass from one CUDA thread to another within a launch.
constexpr bool kShareFibers = false;
#else
constexpr bool kShareFibers = true;
#endif

Block* running_block = nullptr;

std::vector<std::unique_ptr<Fiber>> all_fibers;
std::vector<Fiber*> idle_fibers;
std::vector<Fiber*> spent_fibers;  // until the launch is over

Fiber* idle_fiber(void (*main)()) {
  if (idle_fibers.empty()) {
    all_fibers.push_back(std::make_unique<Fiber>(main));
    return all_fibers.back().get();
  }
  Fiber* fiber = idle_fibers.back();
  idle_fibers.pop_back();
  return fiber;
}

}  // namespace

void reclaim_fibers() {
  idle_fibers.insert(
      idle_fibers.end(), spent_fibers.begin(), spent_fibers.end());
  spent_fibers.clear();
}

Block::Block(Launch& launch, uint3 index)
    : launch_(launch), size_(launch.block.x * launch.block.y * launch.block.z) {
  position.block = index;
  threads_.reserve(size_);
  for (unsigned number = 0; number < size_; ++number) {
    threads_.push_back({number, nullptr, nullptr});
    make_runnable(threads_.back());
  }
  Identity::release(&begin_);
  running_block = this;
}

Block::~Block() {
  running_block = nullptr;
  if (finished_ < size_) {
    // Some fibers are in the middle of a thread.
    idle_fibers.clear();
    spent_fibers.clear();
    all_fibers.clear();
  }
}

void Block::run() {
  while (!runnable_.empty() && failure_.empty()) {
    Thread& thread = threads_[runnable_.top().second];
    runnable_.pop();
    if (thread.fiber == nullptr) {
      thread.fiber = idle_fiber(&Block::fiber_main);
    }
    enter(thread);
    Fiber::switch_to(scheduler_, *thread.fiber);
  }
  if (failure_.empty() && finished_ < size_) {
    failure_ = who_waits();
  }
  if (!failure_.empty()) {
    throw std::runtime_error("cuda_on_host: " + failure_);
  }
}

void Block::fiber_main() {
  Fiber* fiber = running_block->running_->fiber;
  Fiber::arrived(*fiber);
  for (;;) {
    do {
      running_block->run_thread();
    } while (running_block->start_next_on(fiber));
    (kShareFibers ? idle_fibers : spent_fibers).push_back(fiber);
    Fiber::switch_to(*fiber, running_block->scheduler_);
  }
}

void Block::run_thread() {
  Thread& thread = *running_;
  const Identity& identity = thread.fiber->identity;
  identity.set_name(position.block.x, thread.number);
  identity.assume();
  Identity::acquire(&begin_);
  launch_.kernel(launch_.arguments);
  Identity::release(&launch_.end);
  scheduler_.identity.assume();
  leave(thread);
  thread.fiber = nullptr;
  ++finished_;
}

// A thread that has not begun needs no fiber of its own: it goes on where
// another has ended. Kernels without barriers hardly ever switch that way.
bool Block::start_next_on(Fiber* fiber) {
  if (!kShareFibers || runnable_.empty()) {
    return false;
  }
  Thread& next = threads_[runnable_.top().second];
  if (next.fiber != nullptr) {
    return false;
  }
  runnable_.pop();
  next.fiber = fiber;
  enter(next);
  return true;
}

void Block::enter(Thread& thread) {
  running_ = &thread;
  const dim3 size = launch_.block;
  position.thread_number = thread.number;
  position.thread = {
      thread.number % size.x, thread.number / size.x % size.y,
      thread.number / size.x / size.y};
}

// Back to run(), until it is this thread's turn again.
void Block::suspend() {
  Fiber::switch_to(*running_->fiber, scheduler_);
}

void Block::make_runnable(Thread& thread) {
  uint64_t when = thread.number;
  if (schedule.order == Order::kReverse) {
    when = size_ - thread.number;
  } else if (schedule.order == Order::kShuffled) {
    // Turns go on, so that who waits long comes before who came late.
    when = turns_++ / 2 + schedule.random() % size_;
  }
  runnable_.push({when, thread.number});
}

void Block::yield() {
  if (runnable_.empty()) {
    return;
  }
  Thread& thread = *running_;
  scheduler_.identity.assume();
  make_runnable(thread);
  suspend();
  thread.fiber->identity.assume();
}

bool Meeting::is_at(const Meeting& other) const {
  return scope == other.scope && first == other.first && lanes == other.lanes &&
         line == other.line && std::strcmp(what, other.what) == 0 &&
         std::strcmp(file, other.file) == 0;
}

void Block::meet(Meeting wanted, uint64_t value) {
  Thread& thread = *running_;
  scheduler_.identity.assume();
  leave(thread);
  Meeting& meeting = join(wanted, value);
  thread.meeting = &meeting;

  thread.fiber->identity.assume();
  Identity::release(&meeting);
  scheduler_.identity.assume();

  if (meeting.arrived == meeting.expected) {
    for (unsigned number : meeting.waiting) {
      make_runnable(threads_[number]);
    }
    meeting.waiting.clear();
  }
  suspend();
  thread.fiber->identity.assume();
  Identity::acquire(&meeting);
}

Meeting& Block::join(Meeting& wanted, uint64_t value) {
  const bool warp = wanted.scope == Scope::kWarp;
  const unsigned number = running_->number;
  const unsigned first = warp ? number / kWarpSize * kWarpSize : 0;
  wanted.first = first;
  auto meeting =
      std::find_if(meetings_.begin(), meetings_.end(), [&](const Meeting& m) {
        return m.arrived < m.expected && m.is_at(wanted);
      });
  if (meeting == meetings_.end()) {
    meetings_.push_front(wanted);
    meeting = meetings_.begin();
    if (warp) {
      // Lanes beyond the end of the block do not exist and are not waited for.
      const unsigned there = std::min(kWarpSize, size_ - first);
      const unsigned existing = static_cast<unsigned>((1ull << there) - 1);
      meeting->expected =
          static_cast<unsigned>(__builtin_popcount(wanted.lanes & existing));
    } else {
      meeting->expected = size_;
    }
    meeting->values.resize(warp ? kWarpSize : size_);
    poison(meeting->values.data(), meeting->values.size() * sizeof(uint64_t));
  }
  meeting->values[number - first] = value;
  meeting->waiting.push_back(number);
  ++meeting->arrived;
  ++meeting->holders;
  return *meeting;
}

void Block::leave(Thread& thread) {
  if (thread.meeting != nullptr && --thread.meeting->holders == 0) {
    meetings_.remove_if([&](const Meeting& m) { return &m == thread.meeting; });
  }
  thread.meeting = nullptr;
}

uint64_t Block::brought_by(unsigned member) const {
  return running_->meeting->values[member];
}

void Block::stop(const std::string& message) {
  scheduler_.identity.assume();
  failure_ = message;
  for (;;) {
    suspend();
  }
}

std::string Block::who_waits() const {
  std::string text;
  for (const Meeting& m : meetings_) {
    if (m.waiting.empty()) {
      continue;
    }
    text += std::string(m.what) + ": " + std::to_string(m.arrived) + " of " +
            std::to_string(m.expected) +
            (m.scope == Scope::kWarp ? " lanes" : " threads") + " arrived at " +
            m.file + ":" + std::to_string(m.line) + "; ";
  }
  return text + std::to_string(finished_) + " threads of block [" +
         std::to_string(position.block.x) + ", " +
         std::to_string(position.block.y) + ", " +
         std::to_string(position.block.z) + "] have returned";
}

void maybe_yield() {
  if (schedule.order == Order::kShuffled && schedule.random() % 4 == 0) {
    running_block->yield();
  }
}

void meet(
    Scope scope,
    unsigned lanes,
    uint64_t value,
    const char* what,
    const char* file,
    int line) {
  running_block->meet(
      {scope, 0, lanes, what, file, line, 0, 0, 0, {}, {}}, value);
}

uint64_t brought_by(unsigned member) {
  return running_block->brought_by(member);
}

void fail(const std::string& what, const char* file, int line) {
  running_block->stop(what + " at " + file + ":" + std::to_string(line));
}

}  // namespace cuda_on_host
