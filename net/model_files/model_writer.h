// Writes a model as HuggingFace transformers reads it: config.json, generation_config.json, and model.safetensors, or
// shards of at most so many bytes with their index, in fp32 or bf16. Values come in pieces, in the canonical order
// (net/model/layout.h), whenever they are there: the whole model is never in memory. Nothing takes its place before all
// of it is written and flushed. Blocks on the disk; one thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "net/base/new_file.h"
#include "net/base/result.h"
#include "net/model/attention_scope.h"
#include "net/model/config.h"
#include "net/model/layout.h"

namespace atl {

// A template of chats, in the language of Jinja, which transformers reads before that of tokenizer_config.json.
inline constexpr const char* kChatTemplateFile = "chat_template.jinja";

enum class ModelDtype { kFloat32, kBfloat16 };  // bf16: rounded to nearest, ties to even
std::string_view name_of(ModelDtype dtype);     // as config.json says it: float32, bfloat16
std::optional<ModelDtype> parse_model_dtype(std::string_view name);

struct ModelFilesOptions {
  ModelDtype dtype = ModelDtype::kFloat32;
  // Of a file's tensors; a larger tensor has a file of its own. 5 GB, as the HuggingFace hub asks.
  std::uint64_t max_shard_bytes = 5'000'000'000;
  // With which it was trained: said in config.json (kAttentionKey) where it keeps within documents.
  AttentionScope attention = AttentionScope::kPacked;
};

// A file beside the model, replaced with it.
struct CompanionFile {
  std::string name;
  std::string content;
};

class ModelWriter {
 public:
  // Makes the directory where it is missing. kDiskFull where the model does not fit on its disk.
  static Result<ModelWriter> create(const std::filesystem::path& directory, const ModelConfig& config,
                                    const ModelFilesOptions& options);

  const ParameterLayout& layout() const { return layout_; }
  // Values from `offset` of the canonical order on; pieces in any order, each value once.
  Status write(std::int64_t offset, std::span<const float> values);
  // All values are written. Files take their places: tensors, index, companions, config.json last; then those of a
  // model that was here before are removed. `ends`: tokens that end a text beside those of the config, for
  // generation_config.json.
  Status finish(std::span<const CompanionFile> companions = {}, std::span<const std::int64_t> ends = {}) &&;

 private:
  struct Shard {
    std::string name;
    std::int64_t first = 0, numel = 0;  // of the canonical order
    std::uint64_t data_begin = 0;       // in the file
    NewFile file;
  };
  ModelWriter(std::filesystem::path directory, ModelConfig config, const ModelFilesOptions& options)
      : directory_(std::move(directory)),
        config_(std::move(config)),
        dtype_(options.dtype),
        attention_(options.attention) {}
  Status add_shard(std::size_t first_parameter, std::size_t parameters, std::string name);
  std::string index_json() const;
  Status remove_others(std::span<const CompanionFile> companions) const;

  std::filesystem::path directory_;
  ModelConfig config_;
  ModelDtype dtype_;
  AttentionScope attention_;
  ParameterLayout layout_;
  std::vector<Shard> shards_;
};

// All of it at once.
Status write_model_directory(const std::filesystem::path& directory, const ModelConfig& config,
                             std::span<const float> parameters, const ModelFilesOptions& options = {});

}  // namespace atl
