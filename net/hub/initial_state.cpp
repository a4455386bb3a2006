#include "net/hub/initial_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "net/base/encoding.h"
#include "net/base/mutex.h"
#include "net/base/parallel.h"
#include "net/model/config.h"
#include "net/model/initialise.h"
#include "net/model/layout.h"
#include "net/recovery/outer_state.h"

namespace atl {
namespace {

// Digests of the chunks of outer step 0, whose values are drawn parameter by parameter, several at once. A chunk that
// one parameter fills is hashed by who draws it; of those that several share, the parts wait for each other.
class ChunkDigests {
 public:
  explicit ChunkDigests(std::int64_t numel)
      : numel_(numel), digests_(state_chunks(static_cast<std::uint64_t>(numel))) {}

  // Any thread: values [offset, offset + values.size()) of the canonical order, all within a chunk.
  void add(std::int64_t offset, std::span<const float> values) {
    const auto index = static_cast<std::size_t>(offset / kChunk);
    const auto begin = static_cast<std::size_t>(offset % kChunk);
    const auto all = static_cast<std::size_t>(std::min(kChunk, numel_ - static_cast<std::int64_t>(index) * kChunk));
    if (values.size() == all) return hash(index, values);
    std::vector<float> whole;
    {
      MutexLock lock(mutex_);
      Shared& shared = shared_[index];
      shared.values.resize(all);
      std::ranges::copy(values, shared.values.begin() + static_cast<std::ptrdiff_t>(begin));
      shared.filled += values.size();
      if (shared.filled < all) return;
      whole = std::move(shared.values);
      shared_.erase(index);
    }
    hash(index, whole);
  }
  std::vector<Digest> take() { return std::move(digests_); }

  static constexpr auto kChunk = static_cast<std::int64_t>(kStateChunkNumel);

 private:
  void hash(std::size_t index, std::span<const float> parameters) {
    digests_[index] = chunk_digest(parameters, std::span(momentum_).first(parameters.size()));
  }

  const std::int64_t numel_;
  const std::vector<float> momentum_ = std::vector<float>(kStateChunkNumel);  // zeros
  std::vector<Digest> digests_;                                               // each written by one thread
  struct Shared {
    std::vector<float> values;
    std::size_t filled = 0;
  };
  Mutex mutex_;
  std::map<std::size_t, Shared> shared_ ATOLL_GUARDED_BY(mutex_);
};

}  // namespace

Result<std::string> initial_state_hash(const RunConfig& run) {
  if (run.begins_at_hub()) return run.initial_state_sha256;
  if (!run.initial_state.empty()) {
    return Error{ErrorCode::kNotFound,
                 fmt::format("hub.db has lost the hash of the state with which the run began ({}); restore it from a "
                             "backup, or make the run anew with `atoll hub init --from`",
                             run.initial_state)};
  }
  ATOLL_ASSIGN_OR_RETURN(const ModelConfig model, model_config_from_json(run.model_json));
  const ParameterLayout layout = canonical_layout(model);
  ChunkDigests chunks(layout.numel);
  parallel_for(layout.parameters.size(), [&](std::size_t i) {
    const ParameterInfo& parameter = layout.parameters[i];
    ParameterStream stream(model, parameter, i, run.seed);
    std::vector<float> values;
    for (std::int64_t at = parameter.offset; at < parameter.offset + parameter.numel;) {
      const std::int64_t end =
          std::min((at / ChunkDigests::kChunk + 1) * ChunkDigests::kChunk, parameter.offset + parameter.numel);
      values.resize(static_cast<std::size_t>(end - at));
      stream.next(values);
      chunks.add(at, values);
      at = end;
    }
  });
  const StateManifest manifest{OuterStep{0}, 2 * sizeof(float) * static_cast<std::uint64_t>(layout.numel),
                               chunks.take()};
  return to_hex(manifest.tree_hash());
}

Result<std::string> save_initial_state_hash(const RunConfig& run, HubStore& store) {
  ATOLL_ASSIGN_OR_RETURN(std::string hash, initial_state_hash(run));
  ATOLL_RETURN_IF_ERROR(store.save(PersistStateHash{OuterStep{0}, hash, std::nullopt}));
  return hash;
}

}  // namespace atl
