// Stacks that take turns on one operating system thread, and the switch from one to another. On x86-64 the switch is
// ten instructions; elsewhere ucontext, which asks the kernel for the signal mask each time. Any thread; a context goes
// on only where it was made.
#pragma once

#include <cstddef>

namespace atl::cuda_on_cpu {

// What a stack that does not run goes on from.
using Context = void*;

// One that will call `entry`, which never returns, on the stack of `bytes` whose lowest byte is `stack`.
Context new_context(std::byte* stack, std::size_t bytes, void (*entry)());
// Returns when somebody switches to *from.
void switch_context(Context* from, Context to);

// Stacks of equal size, each above pages that nobody may touch. They are made when first asked for and stay.
class Stacks {
 public:
  static constexpr std::size_t kBytes = 64 * 1024;
  Stacks() = default;
  Stacks(const Stacks&) = delete;
  Stacks& operator=(const Stacks&) = delete;
  ~Stacks();
  std::byte* lowest_byte_of(std::size_t index);

 private:
  static constexpr std::size_t kMost = 1024;
  std::byte* memory_ = nullptr;
};

}  // namespace atl::cuda_on_cpu
