// What exports of a model share, wherever its outer state is (model_export.h). For the sources that export.
#pragma once

#include <filesystem>
#include <span>

#include "net/base/bytes.h"
#include "net/model_files/model_writer.h"
#include "trainer/island/model_card.h"

namespace atl {

// The parameters of a chunk's bytes; their momentum follows.
std::span<const float> parameters_of_chunk(ByteView chunk);
// With what is known of how it was trained.
ModelFilesOptions with_attention(ModelFilesOptions files, const ModelCard& card);
// All values are written: the tokenizer, where `data` is the run's, and the card come beside them.
Status finish_export(ModelWriter writer, const ModelCard& card, const ModelConfig& model,
                     const std::filesystem::path& data, const std::filesystem::path& directory);

}  // namespace atl
