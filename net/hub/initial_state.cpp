#include "net/hub/initial_state.h"

#include <algorithm>
#include <vector>

#include "net/base/encoding.h"
#include "net/model/config.h"
#include "net/model/initialise.h"
#include "net/model/layout.h"
#include "net/recovery/outer_state.h"

namespace atl {
Result<std::string> initial_state_hash(const RunConfig& run) {
  ATOLL_ASSIGN_OR_RETURN(const ModelConfig model, model_config_from_json(run.model_json));
  const ParameterLayout layout = canonical_layout(model);
  StateManifest manifest{OuterStep{0}, 2 * sizeof(float) * static_cast<std::uint64_t>(layout.numel), {}};
  std::vector<float> chunk(kStateChunkNumel);
  const std::vector<float> momentum(kStateChunkNumel);  // zeros
  std::size_t filled = 0;
  const auto add = [&] {
    const auto digest = chunk_digest(std::span(chunk).first(filled), std::span(momentum).first(filled));
    manifest.chunk_sha256.push_back(digest);
    filled = 0;
  };
  for (std::size_t i = 0; i < layout.parameters.size(); ++i) {
    ParameterStream stream(model, layout.parameters[i], i, run.seed);
    for (std::int64_t left = layout.parameters[i].numel; left > 0;) {
      const auto count = std::min(static_cast<std::size_t>(left), chunk.size() - filled);
      stream.next(std::span(chunk).subspan(filled, count));
      filled += count;
      left -= static_cast<std::int64_t>(count);
      if (filled == chunk.size()) add();
    }
  }
  if (filled > 0) add();
  return to_hex(manifest.tree_hash());
}

Result<std::string> save_initial_state_hash(const RunConfig& run, HubStore& store) {
  ATOLL_ASSIGN_OR_RETURN(std::string hash, initial_state_hash(run));
  ATOLL_RETURN_IF_ERROR(store.save(PersistStateHash{OuterStep{0}, hash, std::nullopt}));
  return hash;
}

}  // namespace atl
