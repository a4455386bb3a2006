// The functions of NCCL that the trainer calls, as a table that is filled when the program runs: the trainer builds,
// and its tests run against a fake, where there is neither NCCL nor CUDA. Types and values are those of NVIDIA's
// nccl.h, which is not included; nccl_communicator_test compares them where there is one. Plain values. Any thread.
#pragma once

#include <cstddef>
#include <filesystem>

#include "net/base/gpu_libraries.h"
#include "net/base/result.h"

namespace atl {

struct NcclCommHandle;  // ncclComm: opaque
using NcclComm = NcclCommHandle*;
using GpuStream = void*;  // cudaStream_t: a pointer, the same to a caller

// ncclUniqueId: made by one rank, passed by value to all.
struct NcclUniqueId {
  char internal[128];
};

// ncclResult_t. Frozen by NCCL.
enum class NcclResult : unsigned {
  kSuccess = 0,
  kUnhandledCudaError = 1,
  kSystemError = 2,
  kInternalError = 3,
  kInvalidArgument = 4,
  kInvalidUsage = 5,
  kRemoteError = 6,
  kInProgress = 7,
};

// ncclDataType_t: those that a step's collectives are of. Frozen by NCCL.
enum class NcclDataType : unsigned { kInt32 = 2, kFloat32 = 7, kFloat64 = 8, kBfloat16 = 9 };

// ncclRedOp_t. Frozen by NCCL.
enum class NcclRedOp : unsigned { kSum = 0 };

// ncclConfig_t as NCCL 2.14 had it. Later versions append fields, and take the defaults for all that `version` does not
// have.
struct NcclConfig {
  std::size_t size = sizeof(NcclConfig);
  unsigned magic = 0xcafebeef;
  unsigned version = 21400;
  int blocking = 0;  // calls come back at once, with kInProgress where there is more to do
};

struct NcclApi {
  NcclResult (*get_version)(int* version) = nullptr;
  NcclResult (*get_unique_id)(NcclUniqueId* id) = nullptr;
  NcclResult (*comm_init_rank_config)(NcclComm* comm, int ranks, NcclUniqueId id, int rank,
                                      NcclConfig* config) = nullptr;
  NcclResult (*comm_get_async_error)(NcclComm comm, NcclResult* error) = nullptr;
  NcclResult (*comm_abort)(NcclComm comm) = nullptr;
  NcclResult (*comm_finalize)(NcclComm comm) = nullptr;
  NcclResult (*comm_destroy)(NcclComm comm) = nullptr;
  NcclResult (*group_start)() = nullptr;
  NcclResult (*group_end)() = nullptr;
  NcclResult (*all_gather)(const void* send, void* receive, std::size_t send_count, NcclDataType type, NcclComm comm,
                           GpuStream stream) = nullptr;
  NcclResult (*reduce_scatter)(const void* send, void* receive, std::size_t receive_count, NcclDataType type,
                               NcclRedOp op, NcclComm comm, GpuStream stream) = nullptr;
  NcclResult (*all_reduce)(const void* send, void* receive, std::size_t count, NcclDataType type, NcclRedOp op,
                           NcclComm comm, GpuStream stream) = nullptr;
  const char* (*get_error_string)(NcclResult result) = nullptr;
  const char* (*get_last_error)(NcclComm comm) = nullptr;
};

// The oldest NCCL that takes back one process's communicators in whatever order they are aborted, as ncclGetVersion
// codes it.
inline constexpr int kOldestNccl = 21800;

// From where net/base/gpu_libraries.h finds it. It stays loaded for as long as the program runs: NCCL has threads of
// its own.
Result<NcclApi> open_nccl(const std::filesystem::path& libtorch = libtorch_directory());

}  // namespace atl
