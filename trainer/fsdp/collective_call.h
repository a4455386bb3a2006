// One collective as its ranks must agree on it, and the words for it in an error. Plain values. Any thread.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "net/step/tensor.h"

namespace atl {

enum class CollectiveKind : std::uint8_t { kAllGather, kReduceScatter, kAllReduce };

struct CollectiveCall {
  CollectiveKind kind = CollectiveKind::kAllGather;
  DType dtype = DType::kFloat32;
  std::size_t elements = 0;  // of a rank's shard; all_reduce: of its values

  bool operator==(const CollectiveCall&) const = default;
};

// "all_gather of 64 bf16"
inline std::string to_string(const CollectiveCall& call) {
  const char* kind = call.kind == CollectiveKind::kAllGather       ? "all_gather"
                     : call.kind == CollectiveKind::kReduceScatter ? "reduce_scatter"
                                                                   : "all_reduce";
  const char* dtype = call.dtype == DType::kBfloat16  ? "bf16"
                      : call.dtype == DType::kInt32   ? "int32"
                      : call.dtype == DType::kFloat64 ? "fp64"
                                                      : "fp32";
  return fmt::format("{} of {} {}", kind, call.elements, dtype);
}

}  // namespace atl
