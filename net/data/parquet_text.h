// Parquet files as blocks of text: one column of them. The program atoll-parquet (parquet_main.cpp) reads a file, one
// process for each; it is built where Apache Arrow is. One thread at a time.
#pragma once

#include <memory>

#include "net/base/abort_signal.h"
#include "net/base/result.h"
#include "net/data/text_blocks.h"

namespace atl {

// kNotFound, which says what to install, where there is no such program. The process ends with the blocks, and with the
// thread that opened them. `interrupt` ends a wait for it; may be null.
Result<std::unique_ptr<TextBlocks>> open_parquet_text(const TextFile& file, const ReadOptions& options,
                                                      const AbortSignal* interrupt);
// Whether there is one: what ATOLL_PARQUET says, or beside this program, or where that was built.
bool reads_parquet();

}  // namespace atl
