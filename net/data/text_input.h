// Which files are read, in which order, and what each of them is. Pure but for looking at directories; any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "net/base/result.h"

namespace atl {

// By the name, in small or capital letters, without .gz, .gzip, .bgz, .zst, .zstd, .dz behind it.
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

// A file of a directory, or of what a pattern matches, that is not read.
struct LeftOutFile {
  std::filesystem::path path;
  std::string why;
};

struct FoundText {
  std::vector<TextFile> files;
  std::vector<LeftOutFile> left_out;
};

// Inputs in the order given: a file is itself; a directory the .txt, .jsonl, .ndjson and .parquet files below it, the
// first three also compressed, .json files that are, and the .bin and .ds files with their index, sorted by path; a
// pattern (*, ?, [...]) what it matches, sorted. Links to files are those files, but where these are read already;
// links to directories are not followed, nor is what is hidden (.name) read. kNotFound when there is nothing, kInvalidArgument when one file would be read
// twice.
Result<FoundText> find_text(const std::vector<std::filesystem::path>& inputs);
// "a, b and 3 more", each with why; at most `most` of them.
std::string describe_left_out(const std::vector<LeftOutFile>& files, std::size_t most);
Result<std::vector<std::filesystem::path>> expand_text_inputs(const std::vector<std::filesystem::path>& inputs);

}  // namespace atl
