#include "net/recovery/base_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "kernels/bf16.h"
#include "net/base/json_reader.h"

namespace atl {
namespace {

constexpr int kMaxManifestNesting = 3;
constexpr std::uint64_t kManifestHead = 256;  // bytes beside the state's
constexpr std::size_t kMaxDtypeName = 16;

std::uint64_t bytes_of_value(ModelDtype dtype) { return dtype == ModelDtype::kBfloat16 ? 2 : sizeof(float); }

}  // namespace

std::uint64_t BaseModelManifest::parameters_bytes() const {
  return state.state_bytes / (2 * sizeof(float)) * bytes_of_value(dtype);
}

ByteRange BaseModelManifest::range_of_chunk(std::uint64_t index) const {
  const std::uint64_t numel = state.chunk_bytes(index) / (2 * sizeof(float));
  return {index * kStateChunkNumel * bytes_of_value(dtype), numel * bytes_of_value(dtype)};
}

std::uint64_t max_base_model_manifest_bytes(std::uint64_t state_bytes) {
  return max_manifest_bytes(state_bytes) + kManifestHead;
}

std::string BaseModelManifest::to_json() const {
  // The state's own description, as it is.
  return fmt::format(R"({{"version":{},"dtype":"{}","state":{}}})", kVersion, name_of(dtype), state.to_json());
}

Result<BaseModelManifest> BaseModelManifest::from_json(std::string_view text) {
  const auto wrong = [](std::string_view why) {
    return Error{ErrorCode::kProtocol, fmt::format("the manifest of the hub's base model is wrong: {}", why)};
  };
  const auto object =
      parse_bounded_json(text, max_base_model_manifest_bytes(kMaxStateChunks * kStateChunkBytes), kMaxManifestNesting);
  if (!object.ok()) return wrong(object.error().message);
  JsonReader reader(*object);
  int version = 0;
  reader.field("version", version);
  if (reader.status().ok() && version != kVersion) {
    return Error{ErrorCode::kVersionUnsupported,
                 fmt::format("the manifest of the hub's base model is of version {}, here {} is known; update atoll",
                             version, kVersion)};
  }
  std::string dtype;
  reader.bounded("dtype", dtype, kMaxDtypeName);
  const nlohmann::json* state = reader.find("state");
  if (!reader.status().ok()) return wrong(reader.status().error().message);
  const auto parsed = parse_model_dtype(dtype);
  if (!parsed) return wrong("its dtype is neither float32 nor bfloat16");
  auto decoded = StateManifest::from_json(dump_json(*state));
  if (!decoded.ok()) return wrong(decoded.error().message);
  if (decoded->version != OuterStep{0}) return wrong("it is of another outer step than 0");
  if (decoded->state_bytes % (2 * sizeof(float)) != 0) return wrong("its state ends within a parameter");
  return BaseModelManifest{*parsed, std::move(*decoded)};
}

Bytes encode_parameters(std::span<const float> parameters, ModelDtype dtype) {
  Bytes bytes(parameters.size() * bytes_of_value(dtype));
  if (dtype == ModelDtype::kBfloat16) {
    encode_bf16(parameters.data(), parameters.size(), bytes.data());
  } else {
    std::ranges::copy(std::as_bytes(parameters), bytes.begin());
  }
  return bytes;
}

Bytes base_model_chunk(ByteView bytes, ModelDtype dtype) {
  const std::size_t numel = bytes.size() / bytes_of_value(dtype);
  Bytes chunk(2 * sizeof(float) * numel);
  if (dtype == ModelDtype::kBfloat16) {
    decode_bf16(bytes.data(), numel, reinterpret_cast<float*>(chunk.data()));
  } else {
    std::ranges::copy(bytes.first(sizeof(float) * numel), chunk.begin());
  }
  return chunk;
}

}  // namespace atl
