// The tokenizer that a dataset is made with, and its file, which becomes a part of the dataset: whoever has the dataset
// can read its tokens, and goes on with the same. Made once, then only read: any thread.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "net/base/result.h"
#include "net/tokenizer/split_pattern.h"
#include "net/tokenizer/tokenizer.h"

namespace atl {

struct DatasetTokenizer {
  std::shared_ptr<const Tokenizer> tokenizer;
  std::optional<TokenId> begin_of_text;  // before each document, where the tokenizer's file says that texts begin so
  TokenId end_of_text = 0;               // behind each document
  std::string file_name;                 // in the dataset; of bytes, which have none, empty
  std::string file;                      // what is in it
};

DatasetTokenizer byte_dataset_tokenizer();

// Of a file that load_tokenizer (net/tokenizer) reads; in the dataset it is a tokenizer.json, or a
// tokenizer.model of SentencePiece, whatever it was before.
// `end_of_text`: the name of the special token behind documents; empty: the tokenizer's own. kInvalidArgument when it
// has none.
Result<DatasetTokenizer> load_dataset_tokenizer(const std::filesystem::path& file, std::optional<SplitPattern> pattern,
                                                const std::string& end_of_text);

}  // namespace atl
