// The model of its operator's with which a run begins (RunConfig::begins_at_hub): where it comes from, and the copy of
// it that the hub keeps and serves (net/recovery/base_model.h). Its parameters, with no momentum, are outer step 0.
// Block on the disk and compute on all processors; any thread.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "net/base/abort_signal.h"
#include "net/base/result.h"
#include "net/control/home.h"
#include "net/model/config.h"
#include "net/recovery/base_model.h"
#include "net/tokenizer/tokenizer.h"
#include "net/wire/run_config.h"

namespace atl {

class BaseModel {
 public:
  // A directory as HuggingFace writes it (net/model_files/model_reader.h); or an island's home or checkpoint directory,
  // of which it is the newest outer state's parameters. kNotFound, kCorrupt, kInvalidArgument say what is wrong with
  // it; kAborted once `abort`, which outlives this, is raised.
  static Result<BaseModel> open(const std::filesystem::path& directory, const AbortSignal& abort);
  BaseModel(BaseModel&&) noexcept;
  BaseModel& operator=(BaseModel&&) noexcept;
  ~BaseModel();

  const std::string& name() const { return name_; }  // for people, printable
  const ModelConfig& config() const { return config_; }
  std::int64_t numel() const { return layout_.numel; }
  ModelDtype dtype() const { return dtype_; }  // in which nothing of it is lost
  // How it was trained, where its directory says so.
  std::optional<AttentionScope> attention() const;
  // Whose tokens it knows: of a directory the one that lies in it, of an island's states the one of its run's data.
  // Null: nobody says. An error: the file is missing or damaged, or no tokenizer that can be used.
  Result<std::unique_ptr<Tokenizer>> tokenizer() const;
  const std::string& note() const;  // ModelReader::note
  // The parameters of a chunk of the outer state. kNonFinite names the parameter of which a value is NaN or infinite;
  // kAborted. Several threads at once.
  Status read(std::uint64_t chunk, std::span<float> parameters) const;
  const ParameterLayout& layout() const { return layout_; }
  // Values [offset, offset + values.size()) of the canonical order; else as read().
  Status read_values(std::int64_t offset, std::span<float> values) const;

 private:
  struct Source;
  BaseModel(std::string name, ModelConfig config, ModelDtype dtype, std::unique_ptr<Source> source,
            const AbortSignal& abort);
  std::string parameter_at(std::int64_t offset) const;

  std::string name_;
  ModelConfig config_;
  ParameterLayout layout_;
  ModelDtype dtype_;
  std::unique_ptr<Source> source_;
  const AbortSignal* abort_;
};

// Writes the hub's copy, in one pass that also hashes it (8 bytes a parameter: 10 billion take some 40 s of a
// processor): 4 bytes a parameter on the disk, 2 of a model in bf16; in memory a chunk for each processor. Returns the
// tree hash of outer step 0 (hex). With `expected` nothing is replaced where it is another: kInvalidArgument.
Result<std::string> write_base_model(const BaseModel& model, const HubHome& home, const std::string& expected = {});

// The copy that is there, by what it says of itself: kNotFound where there is none that could be the run's.
Result<BaseModelManifest> kept_base_model(const HubHome& home, const RunConfig& run);

// Makes the copy of a hub anew that lost it, as one does that was restored from a backup. kInvalidArgument where it is
// not the model with which the run began. Also while the hub serves.
Result<BaseModelManifest> restore_base_model(const std::filesystem::path& hub_directory, const BaseModel& model);

}  // namespace atl
