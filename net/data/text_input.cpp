#include "net/data/text_input.h"

#include <fmt/format.h>
#include <glob.h>

#include <algorithm>
#include <set>
#include <string_view>

namespace atl {
namespace {

using FilePath = std::filesystem::path;

bool ends_with_any(std::string_view name, std::initializer_list<std::string_view> endings) {
  return std::any_of(endings.begin(), endings.end(), [&](std::string_view ending) { return name.ends_with(ending); });
}

std::string without_compression(const FilePath& file) {
  return ends_with_any(file.filename().string(), {".gz", ".zst", ".dz"}) ? file.stem().string()
                                                                         : file.filename().string();
}

// In a directory; a .json there is more often about the data than data.
bool is_text_name(const FilePath& file) {
  std::error_code ignored;
  if (text_format_of(file) == TextFormat::kTokens) return std::filesystem::exists(token_index_of(file), ignored);
  return ends_with_any(without_compression(file), {".txt", ".jsonl", ".ndjson", ".parquet"});
}

Result<std::vector<FilePath>> files_below(const FilePath& directory) {
  std::error_code error;
  std::vector<FilePath> found;
  std::filesystem::recursive_directory_iterator entries(directory, error), end;
  for (; !error && entries != end; entries.increment(error)) {
    std::error_code ignored;
    if (is_text_name(entries->path()) && entries->is_regular_file(ignored)) found.push_back(entries->path());
  }
  if (error) {
    return Error{ErrorCode::kIo, fmt::format("cannot read directory {}: {}", directory.string(), error.message())};
  }
  if (found.empty()) {
    return Error{
        ErrorCode::kNotFound,
        fmt::format("no .txt, .jsonl or .parquet file (or .gz or .zst of one) below {}; name the files themselves",
                    directory.string())};
  }
  std::sort(found.begin(), found.end());
  return found;
}

Result<std::vector<FilePath>> files_matching(const FilePath& pattern) {
  glob_t matches{};
  const int code = ::glob(pattern.c_str(), GLOB_ERR | GLOB_NOSORT, nullptr, &matches);
  std::vector<FilePath> found(matches.gl_pathv, matches.gl_pathv + matches.gl_pathc);
  ::globfree(&matches);
  if (code == GLOB_NOMATCH || (code == 0 && found.empty())) {
    return Error{ErrorCode::kNotFound, fmt::format("nothing matches {}; check the pattern", pattern.string())};
  }
  if (code != 0) {
    return Error{ErrorCode::kIo, fmt::format("cannot read the directories of {}", pattern.string())};
  }
  std::sort(found.begin(), found.end());
  return found;
}

Result<std::vector<FilePath>> files_of(const FilePath& input) {
  std::error_code error;
  if (std::filesystem::is_directory(input, error)) return files_below(input);
  if (std::filesystem::exists(input, error)) return std::vector<FilePath>{input};
  if (input.string().find_first_of("*?[") == std::string::npos) {
    return Error{ErrorCode::kNotFound, fmt::format("{} does not exist; check the spelling", input.string())};
  }
  ATOLL_ASSIGN_OR_RETURN(const std::vector<FilePath> matches, files_matching(input));
  std::vector<FilePath> files;
  for (const FilePath& match : matches) {
    if (!std::filesystem::is_directory(match, error)) {
      files.push_back(match);
      continue;
    }
    ATOLL_ASSIGN_OR_RETURN(const std::vector<FilePath> below, files_below(match));
    files.insert(files.end(), below.begin(), below.end());
  }
  return files;
}

}  // namespace

TextFormat text_format_of(const std::filesystem::path& file) {
  const std::string name = without_compression(file);
  if (ends_with_any(name, {".jsonl", ".ndjson", ".json"})) return TextFormat::kJsonLines;
  if (ends_with_any(file.filename().string(), {".bin", ".ds"})) return TextFormat::kTokens;
  return name.ends_with(".parquet") ? TextFormat::kParquet : TextFormat::kText;
}

FilePath token_index_of(const FilePath& file) {
  if (file.extension() == ".ds") return file.string() + ".index";
  return FilePath(file).replace_extension(".idx");
}

Result<std::vector<TextFile>> find_text_files(const std::vector<std::filesystem::path>& inputs) {
  std::vector<TextFile> files;
  std::set<FilePath> seen;
  for (std::size_t source = 0; source < inputs.size(); ++source) {
    ATOLL_ASSIGN_OR_RETURN(const std::vector<FilePath> found, files_of(inputs[source]));
    for (const FilePath& path : found) {
      std::error_code error;
      const FilePath canonical = std::filesystem::canonical(path, error);
      if (!error && !seen.insert(canonical).second) {
        return Error{ErrorCode::kInvalidArgument,
                     fmt::format("{} would be read twice; name it, or a directory or pattern that holds it, once",
                                 path.string())};
      }
      if (!std::filesystem::is_regular_file(path, error)) {
        return Error{
            ErrorCode::kInvalidArgument,
            fmt::format("{} is no regular file; text is read twice, so write it to a file first", path.string())};
      }
      const std::uintmax_t bytes = std::filesystem::file_size(path, error);
      const auto modified = std::filesystem::last_write_time(path, error);
      if (error) return Error{ErrorCode::kIo, fmt::format("cannot look at {}: {}", path.string(), error.message())};
      files.push_back(
          {path, text_format_of(path), source, bytes, static_cast<std::int64_t>(modified.time_since_epoch().count())});
    }
  }
  return files;
}

Result<std::vector<std::filesystem::path>> expand_text_inputs(const std::vector<std::filesystem::path>& inputs) {
  ATOLL_ASSIGN_OR_RETURN(const std::vector<TextFile> files, find_text_files(inputs));
  std::vector<std::filesystem::path> paths;
  for (const TextFile& file : files) paths.push_back(file.path);
  return paths;
}

}  // namespace atl
