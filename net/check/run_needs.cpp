#include "net/check/run_needs.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "kernels/wire_codec.h"
#include "net/data/dataset.h"

namespace atl {
namespace {

constexpr std::uint64_t kLargestSize = 1 << 20;  // as the trainer's
constexpr double kMargin = 1.2;
constexpr double kRuntimeBytes = 2e9;  // of each GPU: CUDA's context, libraries, fragmentation

struct Sizes {
  std::uint64_t vocabulary = 0, hidden = 0, intermediate = 0, layers = 0, query = 0, key_value = 0;
  bool tied = false;
};

class ModelReader {
 public:
  explicit ModelReader(const nlohmann::json& model) : model_(model) {}

  std::uint64_t size(const char* key, std::uint64_t fallback = 0) {
    const auto found = model_.find(key);
    if (found == model_.end() || found->is_null()) {
      if (fallback == 0) missing_ = key;
      return fallback;
    }
    const bool good = found->is_number_unsigned() && found->get<std::uint64_t>() <= kLargestSize;
    if (!good || found->get<std::uint64_t>() == 0) missing_ = key;
    return good ? found->get<std::uint64_t>() : 0;
  }
  const char* missing() const { return missing_; }

 private:
  const nlohmann::json& model_;
  const char* missing_ = nullptr;
};

Result<Sizes> sizes_of(const std::string& model_json) {
  const auto model = nlohmann::json::parse(model_json, nullptr, /*allow_exceptions=*/false);
  if (!model.is_object()) return Error{ErrorCode::kInvalidArgument, "the run's model is no JSON object"};
  ModelReader reader(model);
  Sizes sizes;
  sizes.vocabulary = reader.size("vocab_size");
  sizes.hidden = reader.size("hidden_size");
  sizes.intermediate = reader.size("intermediate_size");
  sizes.layers = reader.size("num_hidden_layers");
  const std::uint64_t heads = reader.size("num_attention_heads");
  const std::uint64_t key_value_heads = reader.size("num_key_value_heads", heads);
  const std::uint64_t head_dim =
      reader.size("head_dim", heads > 0 ? std::max<std::uint64_t>(1, sizes.hidden / heads) : 1);
  if (reader.missing() != nullptr) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("the run's model: {} is missing or out of its bounds", reader.missing())};
  }
  sizes.query = heads * head_dim;
  sizes.key_value = key_value_heads * head_dim;
  const auto tied = model.find("tie_word_embeddings");
  sizes.tied = tied != model.end() && tied->is_boolean() && tied->get<bool>();
  return sizes;
}

std::uint64_t block_parameters(const Sizes& sizes) {
  return sizes.hidden * (2 * sizes.query + 2 * sizes.key_value + 3 * sizes.intermediate + 2);
}

// In bytes: every block's input is kept in bf16, one block is computed at a time, and the logits are there in bf16 and
// fp32.
std::uint64_t activation_bytes(const Sizes& sizes, std::uint64_t sequence_length) {
  const std::uint64_t of_a_block =
      2 * (4 * sizes.hidden + 2 * sizes.query + 2 * sizes.key_value + 3 * sizes.intermediate);
  return sequence_length * (2 * sizes.hidden * sizes.layers + of_a_block + 6 * sizes.vocabulary);
}

}  // namespace

Result<RunNeeds> needs_of(const RunConfig& run) {
  ATOLL_ASSIGN_OR_RETURN(const Sizes sizes, sizes_of(run.model_json));
  ATOLL_ASSIGN_OR_RETURN(const DatasetManifest data, DatasetManifest::from_json(run.dataset_json));
  RunNeeds needs;
  needs.run_id = run.run_id;
  needs.run_name = run.name;
  const std::uint64_t embedding = sizes.vocabulary * sizes.hidden;
  const std::uint64_t block = block_parameters(sizes);
  needs.parameters = embedding * (sizes.tied ? 1 : 2) + sizes.layers * block + sizes.hidden;
  needs.largest_block = std::max(embedding, block);
  needs.activation_bytes = activation_bytes(sizes, run.sequence_length);
  for (const auto* split : {&data.train, &data.validation}) {
    for (const ShardEntry& shard : *split) needs.data_bytes += shard.bytes;
  }
  needs.payload_bytes = encoded_bytes(run.wire, needs.parameters);
  needs.min_islands = run.min_islands;
  return needs;
}

std::string describe_model(const RunConfig& run) {
  const Result<Sizes> sizes = sizes_of(run.model_json);
  if (!sizes.ok()) return {};
  const auto model = nlohmann::json::parse(run.model_json, nullptr, /*allow_exceptions=*/false);
  const auto type = model.find("model_type");
  const std::string name = type != model.end() && type->is_string() ? type->get<std::string>().substr(0, 64) : "model";
  return fmt::format("{}, {} layers of {}, {} tokens", name, sizes->layers, sizes->hidden, sizes->vocabulary);
}

double checkpoint_bytes(const RunNeeds& run) { return 8.0 * static_cast<double>(run.parameters); }

double disk_bytes(const RunNeeds& run, double checkpoints) {
  return kMargin * (checkpoints * checkpoint_bytes(run) + static_cast<double>(run.data_bytes));
}

double host_state_bytes(const RunNeeds& run) { return (4.0 + 8.0 + 8.0) * static_cast<double>(run.parameters); }

double gpu_bytes(const RunNeeds& run, std::size_t gpus) {
  const double sharded =
      16.0 * static_cast<double>(run.parameters) / static_cast<double>(std::max<std::size_t>(1, gpus));
  const double gathered = 2 * 2.0 * static_cast<double>(run.largest_block);
  return sharded + gathered + static_cast<double>(run.activation_bytes) + kRuntimeBytes;
}

double sync_fraction(const RunNeeds& run, std::uint32_t islands, double bytes_per_second) {
  const double n = islands;
  return 2 * (n - 1) / n * static_cast<double>(run.payload_bytes) / bytes_per_second / run.inner_seconds;
}

}  // namespace atl
