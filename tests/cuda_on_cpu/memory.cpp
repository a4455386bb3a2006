#include "tests/cuda_on_cpu/memory.h"

#include <link.h>
#include <pthread.h>
#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "tests/cuda_on_cpu/block.h"
#include "tests/cuda_on_cpu/touches.h"

namespace atl::cuda_on_cpu {
namespace {

constexpr std::size_t kAlignment = 256;
// Around each allocation, so that what lies beside it is nobody's.
constexpr std::size_t kRedZone = 1024;
// Of larger allocations ends are checked, races are not: a cell takes 28 bytes.
constexpr std::size_t kMostWatched = std::size_t{8} << 20;
constexpr std::size_t kSharedGuard = 64;
constexpr unsigned char kGuardByte = 0xa5;
constexpr int kNanByte = 0xff;

struct Allocation {
  std::size_t bytes;
  std::unique_ptr<std::byte[]> memory;
  std::unique_ptr<Touches> touches;  // nullptr: not watched
};

struct SharedVariable {
  const void* key;
  const char* name;
  std::size_t begin, end;  // within shared memory
};

struct Image {  // a program's or a library's own data
  std::uintptr_t begin, end;
  bool writable;
};

using Allocations = std::map<std::uintptr_t, Allocation>;
Allocations& allocations() {
  static Allocations all;
  return all;
}
std::uintptr_t found_begin = 0;  // of the allocation that was asked for last
Allocation* found = nullptr;

constexpr std::size_t kArenaBytes = kMostShared + 64 * 1024;
alignas(1024) unsigned char arena[kArenaBytes];
std::size_t arena_used = 0;
std::size_t dynamic_bytes_now = 0;
std::vector<SharedVariable> variables;
Touches arena_touches(kArenaBytes, true);

std::uintptr_t host_stack_begin = 0, host_stack_end = 0;
std::vector<Image> images;

Allocation* allocation_at(std::uintptr_t address) {
  if (found != nullptr && address - found_begin < found->bytes) return found;
  auto next = allocations().upper_bound(address);
  if (next == allocations().begin()) return nullptr;
  --next;
  if (address - next->first >= next->second.bytes) return nullptr;
  found_begin = next->first;
  return found = &next->second;
}

bool in_image(std::uintptr_t address, std::size_t bytes, AccessKind kind) {
  for (int attempt = 0; attempt < 2; ++attempt) {
    for (const Image& image : images) {
      if (address >= image.begin && address + bytes <= image.end) return kind == AccessKind::kRead || image.writable;
    }
    images.clear();
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void*) {
          for (int i = 0; i < info->dlpi_phnum; ++i) {
            const ElfW(Phdr)& header = info->dlpi_phdr[i];
            if (header.p_type != PT_LOAD) continue;
            const std::uintptr_t begin = info->dlpi_addr + header.p_vaddr;
            images.push_back({begin, begin + header.p_memsz, (header.p_flags & PF_W) != 0});
          }
          return 0;
        },
        nullptr);
  }
  return false;
}

std::string words(AccessKind kind, std::size_t bytes) {
  return (kind == AccessKind::kRead    ? "a read of "
          : kind == AccessKind::kWrite ? "a write of "
                                       : "an atomic operation on ") +
         std::to_string(bytes) + " bytes";
}

void refuse_race(const std::string& access, const std::string& place, const std::optional<std::string>& race) {
  if (race) fail_in_thread("a race: " + access + " at " + place + ", which " + *race + " with no barrier between");
}

void check_shared(std::size_t offset, std::size_t bytes, AccessKind kind) {
  for (const SharedVariable& variable : variables) {
    if (offset < variable.begin || offset + bytes > variable.end) continue;
    // The text is made only when there is a race.
    if (auto race = arena_touches.touch(offset, bytes, kind)) {
      refuse_race(words(kind, bytes),
                  std::string(variable.name) + " + " + std::to_string(offset - variable.begin) + " bytes", race);
    }
    return;
  }
  fail_in_thread(words(kind, bytes) + " outside of the block's shared memory");
}

std::size_t add_variable(const void* key, const char* name, std::size_t bytes, std::size_t alignment) {
  const std::size_t begin = (arena_used + kSharedGuard + alignment - 1) / alignment * alignment;
  const std::size_t end = begin + bytes;
  if (end + kSharedGuard > kArenaBytes) return 0;
  std::memset(arena + arena_used, kGuardByte, begin - arena_used);
  std::memset(arena + begin, kNanByte, bytes);
  std::memset(arena + end, kGuardByte, kSharedGuard);
  arena_used = end + kSharedGuard;
  variables.push_back({key, name, begin, end});
  return begin;
}

}  // namespace

void* allocate_device(std::size_t bytes) {
  std::unique_ptr<std::byte[]> memory(new (std::nothrow) std::byte[bytes + 2 * kRedZone + kAlignment]);
  if (memory == nullptr) return nullptr;
  const auto begin =
      (reinterpret_cast<std::uintptr_t>(memory.get()) + kRedZone + kAlignment - 1) / kAlignment * kAlignment;
  auto* const pointer = reinterpret_cast<void*>(begin);
  std::memset(pointer, kNanByte, bytes);
  auto touches = bytes <= kMostWatched ? std::make_unique<Touches>(bytes, false) : nullptr;
  allocations().emplace(begin, Allocation{bytes, std::move(memory), std::move(touches)});
  return pointer;
}

bool free_device(void* pointer) {
  found = nullptr;
  return allocations().erase(reinterpret_cast<std::uintptr_t>(pointer)) == 1;
}

bool copy_stays_inside(const void* pointer, std::size_t bytes) {
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  if (bytes == 0 || allocation_at(address) == nullptr) return true;
  return address + bytes <= found_begin + found->bytes;
}

void begin_shared(std::size_t dynamic_bytes) {
  variables.clear();
  arena_used = 0;
  dynamic_bytes_now = dynamic_bytes;
  if (dynamic_bytes > 0) add_variable(nullptr, "dynamic shared memory", dynamic_bytes, 1024);
}

void* static_shared_bytes(const void* key, const char* name, std::size_t bytes, std::size_t alignment) {
  std::size_t all = bytes;
  for (const SharedVariable& variable : variables) {
    if (variable.key == key) return arena + variable.begin;
    if (variable.key != nullptr) all += variable.end - variable.begin;
  }
  if (all > kMostStaticShared) fail_in_thread("more than 48 KiB of static shared memory");
  if (all + dynamic_bytes_now > kMostShared) fail_in_thread("more than 227 KiB of shared memory");
  const std::size_t begin = add_variable(key, name, bytes, std::max<std::size_t>(alignment, 16));
  if (begin == 0) fail_in_thread("too many shared variables");
  return arena + begin;
}

void* dynamic_shared_bytes() {
  if (variables.empty() || variables.front().key != nullptr)
    fail_in_thread("dynamic shared memory, of which the launch gives none");
  return arena + variables.front().begin;
}

const char* shared_overrun() {
  std::size_t guard = 0;
  for (const SharedVariable& variable : variables) {
    for (; guard < variable.begin; ++guard) {
      if (arena[guard] != kGuardByte) return variable.name;
    }
    for (guard = variable.end; guard < variable.end + kSharedGuard; ++guard) {
      if (arena[guard] != kGuardByte) return variable.name;
    }
  }
  return nullptr;
}

void begin_launch_memory() {
  static thread_local std::uintptr_t stack_end = 0;
  if (stack_end == 0) {
    pthread_attr_t attributes;
    void* lowest = nullptr;
    std::size_t bytes = 0;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0) std::abort();
    pthread_attr_getstack(&attributes, &lowest, &bytes);
    pthread_attr_destroy(&attributes);
    stack_end = reinterpret_cast<std::uintptr_t>(lowest) + bytes;
  }
  host_stack_begin = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  host_stack_end = stack_end;
}

void check_access(std::uintptr_t address, std::size_t bytes, AccessKind kind) {
  const std::uintptr_t offset = address - reinterpret_cast<std::uintptr_t>(arena);
  if (offset < kArenaBytes) return check_shared(offset, bytes, kind);
  if (Allocation* const allocation = allocation_at(address)) {
    const std::size_t at = address - found_begin;
    if (at + bytes > allocation->bytes) {
      fail_in_thread(words(kind, bytes) + " across the end of an allocation of " + std::to_string(allocation->bytes) +
                     " bytes");
    }
    if (allocation->touches == nullptr) return;
    if (auto race = allocation->touches->touch(at, bytes, kind)) {
      refuse_race(words(kind, bytes),
                  "byte " + std::to_string(at) + " of an allocation of " + std::to_string(allocation->bytes) + " bytes",
                  race);
    }
    return;
  }
  // A launch's arguments lie on the stack of who launches.
  if (kind == AccessKind::kRead && address >= host_stack_begin && address < host_stack_end) return;
  if (in_image(address, bytes, kind)) return;
  const auto next = allocations().lower_bound(address);
  std::string where = " outside of device memory";
  if (next != allocations().end() && next->first - address <= kRedZone) {
    where += ", " + std::to_string(next->first - address) + " bytes before an allocation of " +
             std::to_string(next->second.bytes);
  } else if (next != allocations().begin() &&
             address - std::prev(next)->first - std::prev(next)->second.bytes <= kRedZone) {
    const auto& [begin, allocation] = *std::prev(next);
    where += ", " + std::to_string(address - begin - allocation.bytes) + " bytes past the end of an allocation of " +
             std::to_string(allocation.bytes);
  }
  fail_in_thread(words(kind, bytes) + where);
}

void atomic_access(const void* address, std::size_t bytes) {
  if (!in_kernel) return;
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  if (at % bytes != 0) fail_in_thread("a misaligned atomic operation");
  if (at - stack_now >= Stacks::kBytes) check_access(at, bytes, AccessKind::kAtomic);
}

}  // namespace atl::cuda_on_cpu
