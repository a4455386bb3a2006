// The model with which a run begins, as its hub serves it (RunConfig::begins_at_hub): outer step 0 as its parameters
// alone, fp32 or bf16, for its momentum is zero. Islands make chunks of the outer state (outer_state.h) of them, and
// verify each by the run's own hash of outer step 0, as they do whatever comes from each other.
//
//   GET /base-model/manifest    JSON: version, dtype (float32, bfloat16), state (StateManifest of outer step 0)
//   GET /base-model/parameters  [numel] in canonical order, little-endian, in ranges
//
// Pure; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "net/base/byte_range.h"
#include "net/model_files/model_writer.h"
#include "net/recovery/outer_state.h"

namespace atl {

inline constexpr const char* kBaseModelManifestPath = "/base-model/manifest";
inline constexpr const char* kBaseModelParametersPath = "/base-model/parameters";

struct BaseModelManifest {
  static constexpr int kVersion = 1;
  ModelDtype dtype = ModelDtype::kFloat32;
  StateManifest state;

  std::uint64_t parameters_bytes() const;               // of all of them
  ByteRange range_of_chunk(std::uint64_t index) const;  // of these, the parameters of one chunk

  std::string to_json() const;
  // kProtocol says what is wrong; kVersionUnsupported where a newer program wrote it.
  static Result<BaseModelManifest> from_json(std::string_view text);
};
std::uint64_t max_base_model_manifest_bytes(std::uint64_t state_bytes);  // of its JSON

// A chunk's parameters as they lie there.
Bytes encode_parameters(std::span<const float> parameters, ModelDtype dtype);
// The outer state's chunk that they are: fp32, then as many zeros. `bytes`: whole values.
Bytes base_model_chunk(ByteView bytes, ModelDtype dtype);

}  // namespace atl
