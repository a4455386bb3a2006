// Reads a model as HuggingFace writes it: a directory of config.json and model.safetensors, or of shards and
// model.safetensors.index.json; fp32, fp16 or bf16. Opening reads configuration and headers and refuses whatever does
// not fit: a shard that is missing or leads out of the directory, a tensor that stands twice, has another shape, or
// that a model of the configuration has not. Where config.json ties the head to the embedding and the files have both,
// they say whether that is so, as in transformers 5: a head of its own stays one. Where they have the head alone, it is
// the embedding, too. Parameters are then read in pieces of any size, in the canonical order
// (net/model/layout.h), out of memory mappings: the whole model is never in memory unless somebody asks for it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "net/base/result.h"
#include "net/model/attention_scope.h"
#include "net/model/config.h"
#include "net/model/layout.h"
#include "net/model_files/safetensors.h"

namespace atl {

inline constexpr const char* kConfigFile = "config.json";
inline constexpr const char* kGenerationConfigFile = "generation_config.json";
inline constexpr const char* kSingleFile = "model.safetensors";
inline constexpr const char* kIndexFile = "model.safetensors.index.json";
// In config.json, beside what transformers reads: an AttentionScope's name. Where it is missing, nobody says.
inline constexpr const char* kAttentionKey = "atoll_attention";

class ModelReader {
 public:
  // kCorrupt, kNotFound or kInvalidArgument name the file and what is wrong.
  static Result<ModelReader> open(const std::filesystem::path& directory);

  const std::filesystem::path& directory() const { return directory_; }
  const ModelConfig& config() const { return config_; }
  const ParameterLayout& layout() const { return layout_; }
  // How it was trained, where that is said.
  std::optional<AttentionScope> attention() const { return attention_; }
  // What somebody ought to know who goes on with it, a sentence; empty: nothing.
  const std::string& note() const { return note_; }
  bool is_bf16() const;  // all of it: who writes it as bf16 loses nothing
  // Values [offset, offset + out.size()) of the canonical order, widened; within the model. Several threads at once.
  void read(std::int64_t offset, std::span<float> out) const;

 private:
  ModelReader() = default;
  Status open_files();
  Status open_shards(const std::filesystem::path& index);
  void settle_head();
  Result<SafetensorsFile::Tensor> find(const ParameterInfo& parameter) const;
  Status find_parameters();
  Status check_nothing_is_left_over() const;

  std::filesystem::path directory_;
  ModelConfig config_;
  std::optional<AttentionScope> attention_;
  std::string note_;
  ParameterLayout layout_;
  std::vector<SafetensorsFile> files_;
  std::vector<SafetensorsFile::Tensor> tensors_;  // of the layout's parameters, in their order
};

struct ModelDirectory {
  ModelConfig config;
  std::vector<float> parameters;  // canonical flat order
};

// All of it at once.
Result<ModelDirectory> read_model_directory(const std::filesystem::path& directory);

}  // namespace atl
