// The files by which programs of HuggingFace's turn text into a run's tokens (AutoTokenizer), for a model that is
// exported. Reads the run's dataset on this island; any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "net/model/config.h"
#include "net/model_files/model_writer.h"
#include "net/wire/run_config.h"

namespace atl {

struct ExportedTokenizer {
  // tokenizer.json, or tokenizer.model of SentencePiece, tokenizer_config.json, and of a run on chats the template that
  // they were trained in: chat_template.jinja.
  std::vector<CompanionFile> files;
  std::vector<std::int64_t> turn_ends;  // Tokenizer::turn_ends
};

// `data`: where the island keeps the run's dataset. Empty, which the log tells, where the tokenizer's file is not there
// or damaged: a model without it is worth having.
ExportedTokenizer exported_tokenizer(const RunConfig& run, const std::filesystem::path& data, const ModelConfig& model);

}  // namespace atl
