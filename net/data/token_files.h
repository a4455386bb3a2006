// Tokens that other programs prepared, a document after the other:
//   NAME.bin with NAME.idx  Megatron-LM's indexed dataset (megatron/core/datasets/indexed_dataset.py)
//   NAME.ds with NAME.ds.index  datatrove's, which nanotron reads (datatrove/pipeline/tokens/tokenizer.py): tokens of
//   two
//                               or four bytes, and where each document ends, in tokens, eight bytes each
// Which tokenizer made them neither says for certain: whoever imports them names it. Both files are mapped.
#pragma once

#include <memory>

#include "net/base/result.h"
#include "net/data/text_blocks.h"

namespace atl {

// Blocks whose documents are tokens of four bytes, little-endian. kNotFound: the index is not there; kCorrupt: it does
// not fit the tokens.
Result<std::unique_ptr<TextBlocks>> open_token_file(const TextFile& file, const ReadOptions& options);

}  // namespace atl
