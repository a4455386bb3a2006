#include "net/data/text_input.h"

#include <fmt/format.h>
#include <glob.h>

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <string_view>

#include "net/base/printable.h"

namespace atl {
namespace {

using FilePath = std::filesystem::path;

constexpr std::size_t kNamedLeftOut = 5;  // where nothing is left
constexpr std::string_view kCompressed[] = {".gz", ".gzip", ".bgz", ".zst", ".zstd", ".dz"};
constexpr std::string_view kOtherCompressed[] = {".xz", ".lzma", ".bz2", ".lz4", ".lz",  ".br", ".snappy",
                                                 ".sz", ".z",    ".zip", ".7z",  ".rar", ".lzo"};

bool ends_with_any(std::string_view name, std::span<const std::string_view> endings) {
  return std::ranges::any_of(endings, [&](std::string_view ending) { return name.ends_with(ending); });
}

// In small letters.
std::string name_of(const FilePath& file) {
  std::string name = file.filename().string();
  for (char& c : name) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return name;
}

std::string without_ending(const std::string& name, std::span<const std::string_view> endings) {
  return ends_with_any(name, endings) ? name.substr(0, name.rfind('.')) : name;
}

bool is_text_name(const std::string& name) {
  constexpr std::string_view kText[] = {".txt", ".jsonl", ".ndjson", ".parquet"};
  const std::string inner = without_ending(name, kCompressed);
  // A .json that is not compressed is more often about the data than data.
  return ends_with_any(inner, kText) || (inner != name && inner.ends_with(".json"));
}

bool is_token_index(const FilePath& file) {
  const std::string name = name_of(file);
  std::error_code ignored;
  if (name.ends_with(".ds.index")) return std::filesystem::exists(FilePath(file).replace_extension(), ignored);
  return name.ends_with(".idx") && std::filesystem::exists(FilePath(file).replace_extension(".bin"), ignored);
}

bool is_hidden(const FilePath& path) { return path.filename().native().starts_with('.'); }

// Why a file of a directory is not read; empty: it is.
std::string why_left_out(const std::filesystem::directory_entry& entry) {
  const FilePath& path = entry.path();
  std::error_code error;
  const std::filesystem::file_status status = entry.status(error);
  if (is_hidden(path)) return "it is hidden, for its name begins with a dot: name it as an input, too, if it is read";
  if (status.type() == std::filesystem::file_type::not_found) return "a link to nothing";
  if (status.type() == std::filesystem::file_type::directory) {
    return "a link to a directory, which is not followed: name it as an input, too";
  }
  const std::string name = name_of(path);
  const bool tokens = text_format_of(path) == TextFormat::kTokens;
  if (!tokens && !is_text_name(name)) {
    if (is_text_name(without_ending(name, kOtherCompressed))) {
      return fmt::format("{} is not read: decompress it, or compress it by zstd or gzip", path.extension().string());
    }
    if (name.ends_with(".json")) return "a .json is more often about data than data: name the file if it is read";
    return "not a name of text: name the file itself to read it";
  }
  if (status.type() != std::filesystem::file_type::regular) return "no regular file";
  if (tokens && !std::filesystem::exists(token_index_of(path), error)) {
    return fmt::format("{}, which says where documents of tokens end, is not there",
                       token_index_of(path).filename().string());
  }
  return {};
}

struct Found {
  std::vector<FilePath> files;
  std::vector<LeftOutFile> left_out;

  void append(Found more) {
    files.insert(files.end(), more.files.begin(), more.files.end());
    left_out.insert(left_out.end(), more.left_out.begin(), more.left_out.end());
  }
};

Result<Found> files_below(const FilePath& directory) {
  std::error_code error;
  Found found;
  std::filesystem::recursive_directory_iterator entries(directory, error), end;
  for (; !error && entries != end; entries.increment(error)) {
    std::error_code ignored;
    const std::filesystem::directory_entry& entry = *entries;
    const bool is_directory = entry.is_directory(ignored) && !entry.is_symlink(ignored);
    if (is_directory && is_hidden(entry.path())) entries.disable_recursion_pending();
    if (is_directory && !is_hidden(entry.path())) continue;
    const std::string why = why_left_out(entry);
    if (why.empty()) {
      found.files.push_back(entry.path());
    } else if (!is_token_index(entry.path())) {
      found.left_out.push_back({entry.path(), why});
    }
  }
  if (error) {
    return Error{ErrorCode::kIo, fmt::format("cannot read directory {}: {}", directory.string(), error.message())};
  }
  std::sort(found.files.begin(), found.files.end());
  std::ranges::sort(found.left_out, {}, &LeftOutFile::path);
  if (found.files.empty()) {
    return Error{
        ErrorCode::kNotFound,
        fmt::format("no .txt, .jsonl or .parquet file (or .gz or .zst of one) below {}; name the files themselves{}",
                    directory.string(),
                    found.left_out.empty() ? "" : ": there is " + describe_left_out(found.left_out, kNamedLeftOut))};
  }
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

Result<Found> files_of(const FilePath& input) {
  std::error_code error;
  if (std::filesystem::is_directory(input, error)) return files_below(input);
  if (std::filesystem::exists(input, error)) return Found{.files = {input}, .left_out = {}};
  if (std::filesystem::is_symlink(input, error)) {
    return Error{ErrorCode::kNotFound, fmt::format("{} is a link to {}, which does not exist", input.string(),
                                                   std::filesystem::read_symlink(input, error).string())};
  }
  if (input.string().find_first_of("*?[") == std::string::npos) {
    return Error{ErrorCode::kNotFound, fmt::format("{} does not exist; check the spelling", input.string())};
  }
  ATOLL_ASSIGN_OR_RETURN(const std::vector<FilePath> matches, files_matching(input));
  Found found;
  for (const FilePath& match : matches) {
    if (!std::filesystem::is_directory(match, error)) {
      found.files.push_back(match);
      continue;
    }
    ATOLL_ASSIGN_OR_RETURN(Found below, files_below(match));
    found.append(std::move(below));
  }
  return found;
}

// By what it is, whatever it is called.
FilePath target_of(const FilePath& path) {
  std::error_code error;
  const FilePath target = std::filesystem::canonical(path, error);
  return error ? path : target;
}

Result<TextFile> look_at(const FilePath& path, std::size_t source) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} is no regular file; text is read twice, so write it to a file first", path.string())};
  }
  const std::uintmax_t bytes = std::filesystem::file_size(path, error);
  const auto modified = std::filesystem::last_write_time(path, error);
  if (error) return Error{ErrorCode::kIo, fmt::format("cannot look at {}: {}", path.string(), error.message())};
  return TextFile{path, text_format_of(path), source, bytes,
                  static_cast<std::int64_t>(modified.time_since_epoch().count())};
}

}  // namespace

TextFormat text_format_of(const std::filesystem::path& file) {
  constexpr std::string_view kLines[] = {".jsonl", ".ndjson", ".json"}, kTokenFiles[] = {".bin", ".ds"};
  const std::string whole = name_of(file), name = without_ending(whole, kCompressed);
  if (ends_with_any(name, kLines)) return TextFormat::kJsonLines;
  if (ends_with_any(whole, kTokenFiles)) return TextFormat::kTokens;
  return name.ends_with(".parquet") ? TextFormat::kParquet : TextFormat::kText;
}

FilePath token_index_of(const FilePath& file) {
  if (name_of(file).ends_with(".ds")) return file.string() + ".index";
  return FilePath(file).replace_extension(".idx");
}

Result<FoundText> find_text(const std::vector<std::filesystem::path>& inputs) {
  std::vector<Found> found;
  std::set<FilePath> files;  // that no link is needed to read
  for (const FilePath& input : inputs) {
    ATOLL_ASSIGN_OR_RETURN(found.emplace_back(), files_of(input));
    for (const FilePath& path : found.back().files) {
      std::error_code ignored;
      if (!std::filesystem::is_symlink(path, ignored)) files.insert(target_of(path));
    }
  }
  FoundText text;
  std::map<FilePath, FilePath> seen;  // target -> as what
  for (std::size_t source = 0; source < inputs.size(); ++source) {
    text.left_out.insert(text.left_out.end(), found[source].left_out.begin(), found[source].left_out.end());
    for (const FilePath& path : found[source].files) {
      std::error_code ignored;
      const FilePath target = target_of(path);
      const auto before = seen.find(target);
      const bool is_link = path != inputs[source] && std::filesystem::is_symlink(path, ignored);
      if (is_link && (before != seen.end() || files.contains(target))) {
        const FilePath& as = before != seen.end() ? before->second : target;
        text.left_out.push_back({path, fmt::format("a link to {}, which is read", as.string())});
        continue;
      }
      if (before != seen.end()) {
        return Error{ErrorCode::kInvalidArgument,
                     fmt::format("{} would be read twice; name it, or a directory or pattern that holds it, once",
                                 path.string())};
      }
      seen.emplace(target, path);
      ATOLL_ASSIGN_OR_RETURN(text.files.emplace_back(), look_at(path, source));
    }
  }
  return text;
}

std::string describe_left_out(const std::vector<LeftOutFile>& files, std::size_t most) {
  std::string text;
  for (std::size_t i = 0; i < files.size() && i < most; ++i) {
    text += fmt::format("{}{} ({})", i == 0 ? "" : "; ", printable(files[i].path.string()), printable(files[i].why));
  }
  return files.size() <= most ? text : fmt::format("{}; and {} more", text, files.size() - most);
}

Result<std::vector<std::filesystem::path>> expand_text_inputs(const std::vector<std::filesystem::path>& inputs) {
  ATOLL_ASSIGN_OR_RETURN(const FoundText found, find_text(inputs));
  std::vector<std::filesystem::path> paths;
  for (const TextFile& file : found.files) paths.push_back(file.path);
  return paths;
}

}  // namespace atl
