#include "net/model/config.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "net/base/json_reader.h"
#include "net/base/printable.h"

namespace atl {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxConfigBytes = 1 << 20;
constexpr std::int64_t kMaxSize = 1 << 20;
constexpr std::int64_t kMaxLayers = 4096;  // a layout names each one's tensors
constexpr double kMaxParameters = 1e13;    // their bytes can be counted in 64 bits, whatever is done with them

Error unusable(std::string_view problem) {
  return Error{ErrorCode::kInvalidArgument, fmt::format("model configuration: {}", problem)};
}

Error bad_key(std::string_view key, std::string_view problem) { return unusable(fmt::format("{} {}", key, problem)); }

// Keys of one JSON object (net/base/json_reader.h), where null is as good as missing: the first problem is kept.
class KeyReader {
 public:
  explicit KeyReader(const json& object, std::string path = {}) : object_(object), reader_(object, std::move(path)) {}

  bool has(const char* key) const { return reader_.has_value(key); }
  std::int64_t integer(const char* key) {
    std::int64_t value = 0;
    reader_.integer(key, value);
    return value;
  }
  std::int64_t integer_or(const char* key, std::int64_t fallback) { return has(key) ? integer(key) : fallback; }
  double number(const char* key) {
    double value = 0;
    reader_.number(key, value);
    return value;
  }
  double number_or(const char* key, double fallback) { return has(key) ? number(key) : fallback; }
  bool boolean_or(const char* key, bool value) {
    if (has(key)) reader_.field(key, value);
    return value;
  }
  std::string text_or(const char* key, std::string value) {
    if (has(key)) reader_.text(key, value);
    return value;
  }
  // One token id or a list of them.
  std::vector<std::int64_t> token_ids(const char* key) {
    if (!has(key)) return {};
    if (!object_[key].is_array()) return {integer(key)};
    std::vector<std::int64_t> ids;
    reader_.integers(key, ids);
    return ids;
  }
  void fail(const char* key, std::string_view problem) { reader_.fail_field(key, problem); }
  Status status() const {
    return reader_.status().ok() ? ok_status() : Status(unusable(reader_.status().error().message));
  }

 private:
  const json& object_;
  JsonReader reader_;
};

Status refuse_unsupported(const json& root, KeyReader& keys) {
  if (keys.has("architectures")) {
    const auto& names = root.at("architectures");
    if (!names.is_array() || names.size() != 1 || names[0] != "LlamaForCausalLM") {
      keys.fail("architectures", fmt::format("is {}; only [\"LlamaForCausalLM\"] is supported",
                                             printable(dump_json(names), kMaxPersonText)));
    }
  }
  const std::string type = keys.text_or("model_type", "llama");
  if (type != "llama") keys.fail("model_type", fmt::format("is \"{}\"; only \"llama\" is supported", type));
  const std::string activation = keys.text_or("hidden_act", "silu");
  if (activation != "silu") keys.fail("hidden_act", fmt::format("is \"{}\"; only \"silu\" is supported", activation));
  for (const char* key : {"attention_bias", "mlp_bias"}) {
    if (keys.boolean_or(key, false)) keys.fail(key, "is true; biases are not supported");
  }
  if (keys.number_or("attention_dropout", 0.0) != 0.0) {
    keys.fail("attention_dropout", "is not 0; dropout is not supported");
  }
  if (keys.has("quantization_config")) keys.fail("quantization_config", "is set; only plain weights are supported");
  return keys.status();
}

// `rope` is rope_parameters (transformers 5) or rope_scaling (4); the theta may stand in either place.
Status read_rope(const json& rope, const std::string& path, ModelConfig& config) {
  KeyReader keys(rope, path);
  const std::string type = keys.text_or("rope_type", keys.text_or("type", "default"));
  config.rope_theta = keys.number_or("rope_theta", config.rope_theta);
  if (keys.number_or("partial_rotary_factor", 1.0) != 1.0) {
    keys.fail("partial_rotary_factor", "is not 1; partial rotary embeddings are not supported");
  }
  if (type == "llama3") {
    config.rope_scaling = Llama3RopeScaling{.factor = keys.number("factor"),
                                            .low_freq_factor = keys.number("low_freq_factor"),
                                            .high_freq_factor = keys.number("high_freq_factor"),
                                            .original_max_position_embeddings = keys.integer_or(
                                                "original_max_position_embeddings", config.max_position_embeddings)};
  } else if (type != "default") {
    keys.fail("rope_type", fmt::format("is \"{}\"; only \"default\" and \"llama3\" are supported", type));
  }
  return keys.status();
}

Result<json> parse_object(std::string_view text) {
  Result<json> root = parse_bounded_json(text, kMaxConfigBytes, kMaxConfigDepth);
  if (!root.ok()) return unusable(root.error().message + "; is this a config.json?");
  if (!root->is_object()) return unusable("it is no JSON object; is this a config.json?");
  return root;
}

json rope_json(const ModelConfig& config) {
  json rope = {{"rope_type", config.rope_scaling ? "llama3" : "default"}};
  if (config.rope_scaling) {
    rope["factor"] = config.rope_scaling->factor;
    rope["low_freq_factor"] = config.rope_scaling->low_freq_factor;
    rope["high_freq_factor"] = config.rope_scaling->high_freq_factor;
    rope["original_max_position_embeddings"] = config.rope_scaling->original_max_position_embeddings;
  }
  return rope;
}

json token_ids_json(const std::vector<std::int64_t>& ids) {
  if (ids.empty()) return nullptr;
  if (ids.size() == 1) return ids.front();
  return ids;
}

}  // namespace

Status ModelConfig::validate() const {
  const std::pair<const char*, std::int64_t> sizes[] = {
      {"vocab_size", vocab_size},
      {"hidden_size", hidden_size},
      {"intermediate_size", intermediate_size},
      {"num_hidden_layers", num_hidden_layers},
      {"num_attention_heads", num_attention_heads},
      {"num_key_value_heads", num_key_value_heads},
      {"head_dim", head_dim},
  };
  for (const auto& [key, value] : sizes) {
    if (value < 1 || value > kMaxSize)
      return bad_key(key, fmt::format("is {}; it must be from 1 to {}", value, kMaxSize));
  }
  if (num_hidden_layers > kMaxLayers) {
    return bad_key("num_hidden_layers", fmt::format("is {}; it must be from 1 to {}", num_hidden_layers, kMaxLayers));
  }
  if (num_attention_heads > kMaxSize / head_dim) {
    return bad_key("num_attention_heads", fmt::format("times head_dim is over {}", kMaxSize));
  }
  if (max_position_embeddings < 1 || max_position_embeddings > (std::int64_t{1} << 30)) {
    return bad_key("max_position_embeddings", "must be from 1 to 2^30");
  }
  if (num_attention_heads % num_key_value_heads != 0) {
    return bad_key("num_key_value_heads", fmt::format("is {}, which does not divide num_attention_heads = {}",
                                                      num_key_value_heads, num_attention_heads));
  }
  if (hidden_size % num_attention_heads != 0) {  // whatever head_dim says: transformers would not open its export
    return bad_key("num_attention_heads",
                   fmt::format("is {}, which does not divide hidden_size = {}", num_attention_heads, hidden_size));
  }
  if (head_dim % 2 != 0) return bad_key("head_dim", fmt::format("is {}; rotary embeddings need an even one", head_dim));
  const auto real = [](std::int64_t size) { return static_cast<double>(size); };
  const double block = real(hidden_size) *
                       (2 * real((num_attention_heads + num_key_value_heads) * head_dim) + 3 * real(intermediate_size));
  if (real(num_hidden_layers) * block + 2 * real(vocab_size) * real(hidden_size) > kMaxParameters) {
    return bad_key("num_hidden_layers", "and the other sizes make a model of more than 10,000 billion parameters");
  }
  if (!(rms_norm_eps > 0 && rms_norm_eps < 1)) return bad_key("rms_norm_eps", "must be between 0 and 1");
  if (!(rope_theta > 1 && rope_theta < 1e12)) return bad_key("rope_theta", "must be between 1 and 1e12");
  if (!(initializer_range >= 0 && initializer_range < 10)) return bad_key("initializer_range", "must be from 0 to 10");
  if (rope_scaling) {
    const auto& scaling = *rope_scaling;
    if (!(scaling.factor >= 1)) return bad_key("rope_scaling.factor", "must be at least 1");
    if (!(scaling.low_freq_factor > 0 && scaling.high_freq_factor > scaling.low_freq_factor)) {
      return bad_key("rope_scaling.high_freq_factor", "must be greater than low_freq_factor, and both positive");
    }
    if (scaling.original_max_position_embeddings < 1) {
      return bad_key("rope_scaling.original_max_position_embeddings", "must be at least 1");
    }
  }
  return ok_status();
}

Status check_trainable(const ModelConfig& config, std::int64_t vocabulary, std::int64_t sequence_length) {
  if (config.vocab_size < vocabulary) {
    return bad_key("vocab_size", fmt::format("is {}, but the dataset's tokens need {}", config.vocab_size, vocabulary));
  }
  if (sequence_length <= config.max_position_embeddings) return ok_status();
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("sequences of {} tokens are longer than the model's max_position_embeddings, {}; choose a "
                           "shorter --sequence-length",
                           sequence_length, config.max_position_embeddings)};
}

Result<ModelConfig> model_config_from_json(std::string_view text) {
  ATOLL_ASSIGN_OR_RETURN(const json root, parse_object(text));
  KeyReader keys(root);
  ATOLL_RETURN_IF_ERROR(refuse_unsupported(root, keys));
  ModelConfig config;
  config.vocab_size = keys.integer("vocab_size");
  config.hidden_size = keys.integer("hidden_size");
  config.intermediate_size = keys.integer("intermediate_size");
  config.num_hidden_layers = keys.integer("num_hidden_layers");
  config.num_attention_heads = keys.integer("num_attention_heads");
  config.num_key_value_heads = keys.integer_or("num_key_value_heads", config.num_attention_heads);
  if (config.num_attention_heads > 0) {
    config.head_dim = keys.integer_or("head_dim", config.hidden_size / config.num_attention_heads);
  }
  config.max_position_embeddings = keys.integer_or("max_position_embeddings", 2048);
  config.rms_norm_eps = keys.number_or("rms_norm_eps", 1e-6);
  config.rope_theta = keys.number_or("rope_theta", 10000.0);
  config.tie_word_embeddings = keys.boolean_or("tie_word_embeddings", false);
  config.initializer_range = keys.number_or("initializer_range", 0.02);
  config.bos_token_ids = keys.token_ids("bos_token_id");
  config.eos_token_ids = keys.token_ids("eos_token_id");
  if (keys.has("pad_token_id")) config.pad_token_id = keys.integer("pad_token_id");
  ATOLL_RETURN_IF_ERROR(keys.status());
  // Newer spelling first: a file that has both says the same in both.
  for (const char* key : {"rope_parameters", "rope_scaling"}) {
    if (!keys.has(key)) continue;
    ATOLL_RETURN_IF_ERROR(read_rope(root.at(key), key, config));
    break;
  }
  ATOLL_RETURN_IF_ERROR(config.validate());
  return config;
}

std::string to_json(const ModelConfig& config) {
  json rope_parameters = rope_json(config);
  rope_parameters["rope_theta"] = config.rope_theta;
  nlohmann::ordered_json root = {
      {"architectures", {"LlamaForCausalLM"}},
      {"model_type", "llama"},
      {"vocab_size", config.vocab_size},
      {"hidden_size", config.hidden_size},
      {"intermediate_size", config.intermediate_size},
      {"num_hidden_layers", config.num_hidden_layers},
      {"num_attention_heads", config.num_attention_heads},
      {"num_key_value_heads", config.num_key_value_heads},
      {"head_dim", config.head_dim},
      {"hidden_act", "silu"},
      {"max_position_embeddings", config.max_position_embeddings},
      {"initializer_range", config.initializer_range},
      {"rms_norm_eps", config.rms_norm_eps},
      {"tie_word_embeddings", config.tie_word_embeddings},
      {"attention_bias", false},
      {"attention_dropout", 0.0},
      {"mlp_bias", false},
      {"rope_theta", config.rope_theta},
      {"rope_scaling", config.rope_scaling ? rope_json(config) : json(nullptr)},
      {"rope_parameters", rope_parameters},
      {"bos_token_id", token_ids_json(config.bos_token_ids)},
      {"eos_token_id", token_ids_json(config.eos_token_ids)},
      {"dtype", "float32"},
      {"torch_dtype", "float32"},
  };
  if (config.pad_token_id) root["pad_token_id"] = *config.pad_token_id;
  return root.dump(2) + "\n";
}

}  // namespace atl
