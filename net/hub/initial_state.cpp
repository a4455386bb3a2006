#include "net/hub/initial_state.h"

#include <algorithm>
#include <vector>

#include "net/base/encoding.h"
#include "net/model/config.h"
#include "net/model/initialise.h"
#include "net/model/layout.h"
#include "net/recovery/outer_state.h"

namespace atl {
namespace {

constexpr std::size_t kChunkValues = kStateChunkBytes / sizeof(float);

}  // namespace

Result<std::string> initial_state_hash(const RunConfig& run) {
  ATOLL_ASSIGN_OR_RETURN(const ModelConfig model, model_config_from_json(run.model_json));
  const ParameterLayout layout = canonical_layout(model);
  StateManifestWriter writer(OuterStep{0}, static_cast<std::uint64_t>(layout.numel));
  std::vector<float> piece(kChunkValues);
  for (std::size_t i = 0; i < layout.parameters.size(); ++i) {
    ParameterStream stream(model, layout.parameters[i], i, run.seed);
    for (std::int64_t done = 0; done < layout.parameters[i].numel;) {
      const auto count = std::min<std::int64_t>(layout.parameters[i].numel - done, std::ssize(piece));
      const std::span<float> values(piece.data(), static_cast<std::size_t>(count));
      stream.next(values);
      writer.add(values);
      done += count;
    }
  }
  std::ranges::fill(piece, 0.0f);
  for (std::int64_t done = 0; done < layout.numel;) {
    const auto count = std::min<std::int64_t>(layout.numel - done, std::ssize(piece));
    writer.add(std::span<const float>(piece.data(), static_cast<std::size_t>(count)));
    done += count;
  }
  return to_hex(writer.finish().tree_hash());
}

Result<std::string> save_initial_state_hash(const RunConfig& run, HubStore& store) {
  ATOLL_ASSIGN_OR_RETURN(std::string hash, initial_state_hash(run));
  ATOLL_RETURN_IF_ERROR(store.save(PersistStateHash{OuterStep{0}, hash, std::nullopt}));
  return hash;
}

}  // namespace atl
