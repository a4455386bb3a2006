// Which files are read, in which order, and what each of them is. Pure but for looking at directories; any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "net/base/result.h"

namespace atl {

// By the name, without .gz, .zst, .dz behind it.
enum class TextFormat {
  kText,       // any other name
  kJsonLines,  // .jsonl .ndjson .json: an object a line
  kParquet,    // .parquet
  kTokens,     // .bin of Megatron-LM and .ds of datatrove: token_files.h
};

TextFormat text_format_of(const std::filesystem::path& file);
// The file beside one of kTokens that says where documents end.
std::filesystem::path token_index_of(const std::filesystem::path& file);

struct TextFile {
  std::filesystem::path path;
  TextFormat format = TextFormat::kText;
  std::size_t source = 0;        // which of the inputs named it
  std::uint64_t disk_bytes = 0;  // as it lies there, compressed or not
  std::int64_t modified = 0;     // nanoseconds of the file system's clock
};

// Inputs in the order given: a file is itself; a directory the .txt, .jsonl, .ndjson and .parquet files (the first
// three also .gz or .zst) below it, and the .bin and .ds files with their index, sorted by path; a pattern (*, ?,
// [...]) what it matches, sorted. kNotFound when there is nothing, kInvalidArgument when one file would be read twice.
Result<std::vector<TextFile>> find_text_files(const std::vector<std::filesystem::path>& inputs);
Result<std::vector<std::filesystem::path>> expand_text_inputs(const std::vector<std::filesystem::path>& inputs);

}  // namespace atl
