#include "app/cli/run_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "net/check/thresholds.h"

namespace atl {
namespace {

using nlohmann::json;

constexpr std::int64_t kLargestSize = 1 << 20;       // the trainer's bound
constexpr std::int64_t kDefaultMaxPositions = 2048;  // of a config.json that does not say
constexpr std::size_t kLongestName = 64;             // what an invite carries

Error wrong_model(const std::string& what) {
  return Error{ErrorCode::kInvalidArgument, "the model's config.json: " + what};
}

Result<std::int64_t> size_of(const json& model, const char* key, std::optional<std::int64_t> fallback = std::nullopt) {
  const auto found = model.find(key);
  if ((found == model.end() || found->is_null()) && fallback) return *fallback;
  if (found == model.end() || !found->is_number_integer())
    return wrong_model(fmt::format("{} is missing or no integer", key));
  const auto size = found->get<std::int64_t>();
  if (size >= 1 && size <= kLargestSize) return size;
  return wrong_model(fmt::format("{} is {}; it must be from 1 to {}", key, size, kLargestSize));
}

Status check_heads(const json& model) {
  ATOLL_ASSIGN_OR_RETURN(const std::int64_t hidden, size_of(model, "hidden_size"));
  ATOLL_ASSIGN_OR_RETURN(const std::int64_t heads, size_of(model, "num_attention_heads"));
  ATOLL_ASSIGN_OR_RETURN(const std::int64_t kv_heads, size_of(model, "num_key_value_heads", heads));
  ATOLL_ASSIGN_OR_RETURN(const std::int64_t head_dim, size_of(model, "head_dim", hidden / heads));
  if (heads % kv_heads != 0) return wrong_model("num_key_value_heads does not divide num_attention_heads");
  if (head_dim % 2 != 0) return wrong_model(fmt::format("head_dim is {}; it must be even", head_dim));
  return ok_status();
}

Status check_model(const RunConfig& run, std::uint32_t dataset_vocab_size) {
  const json model = json::parse(run.model_json, nullptr, /*allow_exceptions=*/false);
  if (!model.is_object()) return wrong_model("it is no JSON object");
  if (const json type = model.value("model_type", json("llama")); type != "llama") {
    return wrong_model(fmt::format("model_type is {}; only \"llama\" is supported", type.dump()));
  }
  for (const char* key : {"intermediate_size", "num_hidden_layers"}) ATOLL_RETURN_IF_ERROR(size_of(model, key));
  ATOLL_RETURN_IF_ERROR(check_heads(model));
  ATOLL_ASSIGN_OR_RETURN(const std::int64_t vocabulary, size_of(model, "vocab_size"));
  if (vocabulary < dataset_vocab_size) {
    return wrong_model(
        fmt::format("vocab_size is {}, but the dataset's tokens need {}", vocabulary, dataset_vocab_size));
  }
  ATOLL_ASSIGN_OR_RETURN(const std::int64_t positions, size_of(model, "max_position_embeddings", kDefaultMaxPositions));
  if (run.sequence_length <= positions) return ok_status();
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("sequences of {} tokens are longer than the model's max_position_embeddings, {}; choose a "
                           "shorter --sequence-length",
                           run.sequence_length, positions)};
}

}  // namespace

Status check_run_name(const std::string& name) {
  const bool printable = std::ranges::none_of(
      name, [](char c) { return static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) == 0x7f; });
  if (!name.empty() && name.size() <= kLongestName && printable) return ok_status();
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("--name must be from 1 to {} bytes of text in one line", kLongestName)};
}

Status check_run(const RunConfig& run, std::uint32_t vocab_size) {
  ATOLL_RETURN_IF_ERROR(parse_check_policy(run.check_json));
  ATOLL_RETURN_IF_ERROR(check_model(run, vocab_size));
  if (!(run.inner.learning_rate > 0)) {
    return Error{ErrorCode::kInvalidArgument, "the learning rate must be positive (--lr)"};
  }
  if (run.outer_learning_rate > 0) return ok_status();
  return Error{ErrorCode::kInvalidArgument, "the outer learning rate must be positive (--outer-lr)"};
}

}  // namespace atl
