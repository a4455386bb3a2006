#include "tests/cuda_on_cpu/fibers.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#ifndef __x86_64__
#include <ucontext.h>
#endif

namespace atl::cuda_on_cpu {
namespace {

constexpr std::size_t kGuardBytes = 4096;

}  // namespace

#ifdef __x86_64__

// The registers that the System V ABI gives to the callee. Rounding and flags of the floating-point unit are left as
// they are: all stacks share them.
extern "C" void atoll_switch_stacks(Context* from, Context to);
asm(R"(
.text
.globl atoll_switch_stacks
.hidden atoll_switch_stacks
.type atoll_switch_stacks, @function
atoll_switch_stacks:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size atoll_switch_stacks, .-atoll_switch_stacks
)");

Context new_context(std::byte* stack, std::size_t bytes, void (*entry)()) {
  // From the top: a return address that ends a debugger's walk, `entry`, six registers. A function is entered with its
  // stack pointer 8 above a multiple of 16.
  auto* top = reinterpret_cast<std::uint64_t*>(stack + bytes / 16 * 16);
  std::memset(top - 8, 0, 8 * sizeof(std::uint64_t));
  top[-2] = reinterpret_cast<std::uint64_t>(entry);
  return top - 8;
}

void switch_context(Context* from, Context to) { atoll_switch_stacks(from, to); }

#else

Context new_context(std::byte* stack, std::size_t bytes, void (*entry)()) {
  auto* const context = new (stack) ucontext_t;
  getcontext(context);
  context->uc_stack.ss_sp = stack + sizeof(ucontext_t);
  context->uc_stack.ss_size = bytes - sizeof(ucontext_t);
  context->uc_link = nullptr;
  makecontext(context, entry, 0);
  return context;
}

void switch_context(Context* from, Context to) {
  ucontext_t mine;
  *from = &mine;
  swapcontext(&mine, static_cast<ucontext_t*>(to));
}

#endif

Stacks::~Stacks() {
  if (memory_ != nullptr) munmap(memory_, kMost * (kGuardBytes + kBytes));
}

std::byte* Stacks::lowest_byte_of(std::size_t index) {
  if (memory_ == nullptr) {
    void* const memory = mmap(nullptr, kMost * (kGuardBytes + kBytes), PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
      std::fputs("cuda_on_cpu: no memory for 1024 stacks of 64 KiB\n", stderr);
      std::abort();
    }
    memory_ = static_cast<std::byte*>(memory);
    for (std::size_t i = 0; i < kMost; ++i) mprotect(memory_ + i * (kGuardBytes + kBytes), kGuardBytes, PROT_NONE);
  }
  return memory_ + index * (kGuardBytes + kBytes) + kGuardBytes;
}

}  // namespace atl::cuda_on_cpu
