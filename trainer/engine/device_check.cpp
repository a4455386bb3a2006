#include "trainer/engine/device_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "net/model/initialise.h"
#include "net/model/layout.h"
#include "trainer/engine/fsdp_engine.h"
#include "trainer/engine/inference_engine.h"

namespace atl {
namespace {

constexpr std::int64_t kLength = 70;  // more than a tile of any attention kernel's rows, and no multiple of one

ModelConfig small_model(const ModelConfig& model) {
  ModelConfig small = model;
  const std::int64_t queries_a_key = model.num_attention_heads / model.num_key_value_heads;
  small.vocab_size = 512;
  small.hidden_size = 128;
  small.intermediate_size = 256;
  small.num_hidden_layers = 2;
  small.num_key_value_heads = std::min<std::int64_t>(model.num_key_value_heads, 2);
  small.num_attention_heads = small.num_key_value_heads * queries_a_key;
  small.max_position_embeddings = kFusedCheckLength;
  small.initializer_range = 0.05;  // so that attention and gates are not all alike
  return small;
}

std::vector<std::int32_t> random_tokens(std::int64_t count, const ModelConfig& model) {
  std::mt19937 random(1);
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(count));
  for (auto& token : tokens) token = static_cast<std::int32_t>(random() % static_cast<unsigned>(model.vocab_size));
  return tokens;
}

// Three documents a sequence, one of them of a single token, one over the edge of a tile.
std::int32_t document_start(std::int64_t place) { return place < 20 ? 0 : place == 20 ? 20 : 21; }

// ||a - b|| / ||b||
double relative_difference(std::span<const float> a, std::span<const float> b) {
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    const double delta = static_cast<double>(a[i]) - b[i];
    difference += delta * delta;
    norm += static_cast<double>(b[i]) * b[i];
  }
  return std::sqrt(difference / norm);
}

// Both round at the same places, but add in other orders: in bf16 a value may then be rounded to its other neighbour,
// 2^-8 away, which some twenty roundings on the way to a gradient make 1 or 2 %; in fp32 some 1e-6. A part that is left
// out, or taken twice, is far above either.
double tolerance(Precision precision) { return precision == Precision::kBf16 ? 0.08 : 1e-3; }

Error differs(const std::string& what, double by, double at_most) {
  return Error{
      ErrorCode::kInternal,
      fmt::format("the devices compute another {} than this processor ({:.2g} of it; at most {:.2g} is rounding): "
                  "they are not used. Update the driver and the GPU libraries, and look at the cards with: "
                  "atoll check",
                  what, by, at_most)};
}

double larger(double a, double b) { return b <= a ? a : b; }  // NaN, where the second is

// The largest |a - b|, over the largest |b|.
double furthest(std::span<const float> a, std::span<const float> b) {
  double most = 0, largest = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    most = larger(most, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
    largest = std::max(largest, std::abs(static_cast<double>(b[i])));
  }
  return most / largest;
}

std::vector<float> probabilities(std::span<const TokenScore> scores) {
  std::vector<float> values;
  values.reserve(scores.size());
  for (const TokenScore& score : scores) values.push_back(score.log_probability);
  return values;
}

struct CheckBatch {
  CheckBatch(const ModelConfig& model, std::int64_t sequences, std::int64_t length, AttentionScope attention)
      : tokens(random_tokens(sequences * (length + 1), model)), batch{tokens, sequences, length} {
    if (attention != AttentionScope::kDocument) return;
    for (std::int64_t i = 0; i < batch.token_count(); ++i) starts.push_back(document_start(i % length));
    batch.starts = starts;
  }
  CheckBatch(const CheckBatch&) = delete;
  CheckBatch& operator=(const CheckBatch&) = delete;
  const TokenBatch& view() const { return batch; }

  const std::vector<std::int32_t> tokens;
  std::vector<std::int32_t> starts;
  TokenBatch batch;  // of both
};

Status compare(const ModelConfig& model, const GradientReport& got, const GradientReport& expected, double at_most) {
  const double loss = std::abs(got.loss_nats - expected.loss_nats) / expected.loss_nats;
  if (!(loss <= at_most / 10)) return differs("loss", loss, at_most / 10);
  for (const ParameterInfo& parameter : canonical_layout(model).parameters) {
    const auto first = static_cast<std::size_t>(parameter.offset);
    const auto count = static_cast<std::size_t>(parameter.numel);
    const double difference = relative_difference(std::span(got.gradients).subspan(first, count),
                                                  std::span(expected.gradients).subspan(first, count));
    if (!(difference <= at_most)) return differs("gradient of " + parameter.name, difference, at_most);
  }
  return ok_status();
}

}  // namespace

Status check_devices(const ModelConfig& model, Precision precision, AttentionScope attention,
                     std::unique_ptr<DeviceGroup> devices) {
  const ModelConfig small = small_model(model);
  EngineOptions options;
  options.local_ranks = devices->world_size();
  options.seed = 1;
  options.max_z_loss = 1e-3;
  options.precision = precision;
  options.attention = attention;
  options.micro_batch_sequences = 1;
  const std::int64_t sequences = 2 * devices->world_size();
  ATOLL_ASSIGN_OR_RETURN(const auto there, create_engine(small, options, std::move(devices)));
  options.local_ranks = 1;
  ATOLL_ASSIGN_OR_RETURN(const auto here, Engine::create(small, options));
  std::vector<std::int64_t> lengths{kLength};
  if (precision == Precision::kBf16 && attention == AttentionScope::kPacked) lengths.push_back(kFusedCheckLength);
  for (const std::int64_t length : lengths) {
    const CheckBatch batch(small, sequences, length, attention);
    ATOLL_ASSIGN_OR_RETURN(const GradientReport got, there->gradients(batch.view()));
    ATOLL_ASSIGN_OR_RETURN(const GradientReport expected, here->gradients(batch.view()));
    ATOLL_RETURN_IF_ERROR(compare(small, got, expected, tolerance(precision)));
  }
  return ok_status();
}

// A long text beside short ones in one pass of several parts, then tokens that are added one by one, so that the keys
// of few rows are divided; and the labels of what follows.
Result<InferenceDifference> compare_inference(const ModelConfig& model, Precision precision,
                                              std::unique_ptr<DeviceGroup> device) {
  constexpr std::int64_t kCapacity = 512;
  ModelConfig small = small_model(model);
  small.max_position_embeddings = kCapacity;
  small.initializer_range = 0.2;  // attention that is not nearly even
  const InferenceOptions options{.precision = precision, .slots = 3, .capacity = kCapacity, .most_rows = 200};
  const std::vector<float> parameters = fresh_parameters(small, 1);
  const auto read = [&](std::int64_t first, std::span<float> values) {
    std::copy_n(parameters.begin() + first, values.size(), values.begin());
  };
  ATOLL_ASSIGN_OR_RETURN(const auto there, InferenceEngine::create(small, options, read, std::move(device)));
  ATOLL_ASSIGN_OR_RETURN(const auto here, InferenceEngine::create(small, options, read));
  const std::vector<std::int32_t> tokens = random_tokens(600, small);
  const auto part = [&](std::size_t first, std::size_t count) { return std::span(tokens).subspan(first, count); };
  const std::vector<std::vector<SlotTokens>> passes{
      {{2, part(0, 301), {}}, {0, part(301, 5), {}}, {1, part(306, 44), {}}},
      {{2, part(350, 1), {}}, {0, part(351, 1), {}}},
      {{1, part(352, 1), {}}},
      {{2, part(353, 1), {}}}};
  InferenceDifference difference;
  for (const auto& texts : passes) {
    ATOLL_ASSIGN_OR_RETURN(const std::vector<float> got, there->logits(texts));
    ATOLL_ASSIGN_OR_RETURN(const std::vector<float> expected, here->logits(texts));
    difference.next_token = larger(difference.next_token, furthest(got, expected));
  }
  const std::vector<SlotTokens> labelled{{1, part(400, 40), part(401, 40)}, {0, part(450, 3), part(451, 2)}};
  ATOLL_ASSIGN_OR_RETURN(const std::vector<TokenScore> got, there->scores(labelled));
  ATOLL_ASSIGN_OR_RETURN(const std::vector<TokenScore> expected, here->scores(labelled));
  difference.probability = furthest(probabilities(got), probabilities(expected));
  return difference;
}

Status check_inference_device(const ModelConfig& model, Precision precision, std::unique_ptr<DeviceGroup> device) {
  ATOLL_ASSIGN_OR_RETURN(const InferenceDifference by, compare_inference(model, precision, std::move(device)));
  const double at_most = tolerance(precision);
  if (!(by.next_token <= at_most)) return differs("next token", by.next_token, at_most);
  if (!(by.probability <= at_most)) return differs("probability of a token", by.probability, at_most);
  return ok_status();
}

}  // namespace atl
