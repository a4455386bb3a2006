// Device and shared memory: where each piece of it ends, and who touched its bytes last. Under the launch lock.
#pragma once

#include <cstddef>
#include <cstdint>

namespace atl::cuda_on_cpu {

inline constexpr std::size_t kMostStaticShared = 48 * 1024;
inline constexpr std::size_t kMostShared = 227 * 1024;  // of compute capability 9.0

// Filled with NaN bytes (0xff). nullptr when there is no memory.
void* allocate_device(std::size_t bytes);
// False if no allocation begins there.
bool free_device(void* pointer);
// Whether all of it lies in one allocation, or in none.
bool copy_stays_inside(const void* pointer, std::size_t bytes);

// Forgets the block before, and lays out `dynamic_bytes`.
void begin_shared(std::size_t dynamic_bytes);
// Says where bytes were written beside the block's variables; nullptr if nowhere.
const char* shared_overrun();
// Where the launching thread's own stack begins and ends.
void begin_launch_memory();

enum class AccessKind { kRead, kWrite, kAtomic };
void check_access(std::uintptr_t address, std::size_t bytes, AccessKind kind);

}  // namespace atl::cuda_on_cpu
