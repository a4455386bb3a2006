// The functions that compilers call before each read and write under -fsanitize=thread, and before each use of a
// pointer under -fsanitize=alignment. Kernels are compiled with both; these, and not the sanitizers' own libraries,
// answer.
#include <cstdint>
#include <string>

#include "tests/cuda_on_cpu/block.h"
#include "tests/cuda_on_cpu/memory.h"

namespace {

using namespace atl::cuda_on_cpu;

inline void access(const void* pointer, std::size_t bytes, AccessKind kind) {
  if (!in_kernel) return;
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  if (address - stack_now < Stacks::kBytes) return;
  check_access(address, bytes, kind);
}

}  // namespace

extern "C" {

#define ATOLL_ACCESSES(bytes)                                                                  \
  void __tsan_read##bytes(void* p) { access(p, bytes, AccessKind::kRead); }                    \
  void __tsan_write##bytes(void* p) { access(p, bytes, AccessKind::kWrite); }                  \
  void __tsan_unaligned_read##bytes(void* p) { access(p, bytes, AccessKind::kRead); }          \
  void __tsan_unaligned_write##bytes(void* p) { access(p, bytes, AccessKind::kWrite); }        \
  void __tsan_volatile_read##bytes(void* p) { access(p, bytes, AccessKind::kRead); }           \
  void __tsan_volatile_write##bytes(void* p) { access(p, bytes, AccessKind::kWrite); }         \
  void __tsan_unaligned_volatile_read##bytes(void* p) { access(p, bytes, AccessKind::kRead); } \
  void __tsan_unaligned_volatile_write##bytes(void* p) { access(p, bytes, AccessKind::kWrite); }
ATOLL_ACCESSES(1)
ATOLL_ACCESSES(2)
ATOLL_ACCESSES(4)
ATOLL_ACCESSES(8)
ATOLL_ACCESSES(16)
#undef ATOLL_ACCESSES

void __tsan_read_range(void* p, std::size_t bytes) { access(p, bytes, AccessKind::kRead); }
void __tsan_write_range(void* p, std::size_t bytes) { access(p, bytes, AccessKind::kWrite); }
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}

#ifdef ATOLL_ANSWERS_ALIGNMENT
// As in compiler-rt's ubsan_handlers.h.
struct AlignmentSource {
  const char* file;
  std::uint32_t line, column;
};
struct AlignmentData {
  AlignmentSource source;
  const void* type;
  unsigned char log_alignment, check;
};
void __ubsan_handle_type_mismatch_v1(AlignmentData* data, std::uintptr_t pointer) {
  if (!in_kernel || pointer == 0) return;
  fail_in_thread("a pointer that is not a multiple of " + std::to_string(1u << data->log_alignment) + ", used at " +
                 data->source.file + ":" + std::to_string(data->source.line));
}
void __ubsan_handle_type_mismatch_v1_abort(AlignmentData* data, std::uintptr_t pointer) {
  __ubsan_handle_type_mismatch_v1(data, pointer);
}
#endif

}  // extern "C"
