// Parquet files as blocks of text: one column of them. libatoll-parquet.so (parquet_module.h) reads them; it is built
// where Apache Arrow is. One thread at a time.
#pragma once

#include <memory>

#include "net/base/result.h"
#include "net/data/text_blocks.h"

namespace atl {

// kNotFound, which says what to install, where there is no module.
Result<std::unique_ptr<TextBlocks>> open_parquet_text(const TextFile& file, const ReadOptions& options);
// Whether there is one.
bool reads_parquet();

}  // namespace atl
