// The tokenizer that lies in a dataset, as its manifest or a run's configuration names it. Reads a file; any thread.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "net/base/result.h"
#include "net/data/dataset.h"
#include "net/tokenizer/tokenizer.h"

namespace atl {

// `kind`, `file`: what is said of it; `directory`: where the file lies. Null where tokens came without one. kNotFound;
// kCorrupt: the file is another one.
Result<std::unique_ptr<Tokenizer>> tokenizer_of_data(const std::string& kind, const std::optional<TokenizerEntry>& file,
                                                     const std::filesystem::path& directory);

}  // namespace atl
