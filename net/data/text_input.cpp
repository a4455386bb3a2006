#include "net/data/text_input.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <memory>

#include <nlohmann/json.hpp>

#include "net/base/file.h"
#include "net/base/json_reader.h"
#include "net/base/unique_fd.h"

namespace atl {
namespace {

constexpr std::size_t kMaxLineBytes = 64u << 20;
constexpr int kMaxLineDepth = 256;

struct GzCloser {
  void operator()(gzFile file) const noexcept { gzclose(file); }
};
using UniqueGzFile = std::unique_ptr<std::remove_pointer_t<gzFile>, GzCloser>;

bool ends_with_any(const std::filesystem::path& path, std::initializer_list<std::string_view> endings) {
  const std::string name = path.filename().string();
  return std::any_of(endings.begin(), endings.end(), [&](std::string_view ending) { return name.ends_with(ending); });
}

bool is_json_lines(const std::filesystem::path& path) { return ends_with_any(path, {".jsonl", ".jsonl.gz"}); }

Status expand_directory(const std::filesystem::path& directory, std::vector<std::filesystem::path>& files) {
  std::error_code error;
  std::vector<std::filesystem::path> found;
  std::filesystem::recursive_directory_iterator entries(directory, error), end;
  for (; !error && entries != end; entries.increment(error)) {
    std::error_code ignored;
    if (ends_with_any(entries->path(), {".txt", ".txt.gz", ".jsonl", ".jsonl.gz"}) &&
        entries->is_regular_file(ignored)) {
      found.push_back(entries->path());
    }
  }
  if (error)
    return Error{ErrorCode::kIo, fmt::format("cannot read directory {}: {}", directory.string(), error.message())};
  if (found.empty()) {
    return Error{
        ErrorCode::kNotFound,
        fmt::format("no .txt or .jsonl file (or .gz of one) below {}; name the files themselves", directory.string())};
  }
  std::sort(found.begin(), found.end());
  files.insert(files.end(), found.begin(), found.end());
  return ok_status();
}

// The file's bytes, decompressed where they are gzip, one bounded piece after the other.
template <class OnPiece>
Status for_each_piece(const std::filesystem::path& path, OnPiece on_piece) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return errno_error("open", path);
  const UniqueGzFile file(gzdopen(fd.get(), "rb"));
  if (!file) return Error{ErrorCode::kIo, fmt::format("cannot read {}: out of memory", path.string())};
  (void)fd.release();  // gzclose closes it
  gzbuffer(file.get(), 256 * 1024);
  std::array<char, 256 * 1024> buffer;
  for (;;) {
    const int count = gzread(file.get(), buffer.data(), buffer.size());
    int code = Z_OK;
    const char* const message = gzerror(file.get(), &code);
    if (code == Z_ERRNO) return errno_error("read", path);
    // Z_BUF_ERROR: the compressed data ends in the middle.
    if (count < 0 || code == Z_BUF_ERROR || code == Z_DATA_ERROR) {
      return Error{ErrorCode::kCorrupt,
                   fmt::format("{} is damaged gzip data ({}); get the file again", path.string(), message)};
    }
    if (count == 0) return ok_status();
    ATOLL_RETURN_IF_ERROR(on_piece(std::string_view(buffer.data(), static_cast<std::size_t>(count))));
  }
}

Status read_plain(const std::filesystem::path& path, TextSink& sink) {
  std::uint64_t offset = 0;
  const Status status = for_each_piece(path, [&](std::string_view piece) -> Status {
    if (const auto nul = piece.find('\0'); nul != std::string_view::npos) {
      return Error{
          ErrorCode::kInvalidArgument,
          fmt::format("{} is not text: byte {} is 0; convert it to UTF-8 text first", path.string(), offset + nul)};
    }
    offset += piece.size();
    return sink.text(piece);
  });
  return status.ok() ? sink.end_of_document() : status;
}

Status read_json_line(const std::filesystem::path& path, std::uint64_t line_number, std::string_view line,
                      TextSink& sink) {
  if (line.find_first_not_of(" \t\r") == std::string_view::npos) return ok_status();
  // What stands beside the text is anybody's.
  const auto json = parse_bounded_json(line, kMaxLineBytes, kMaxLineDepth, RepeatedKeys::kLastCounts);
  std::string text;
  Status read = json.ok() ? ok_status() : Status(json.error());
  if (json.ok()) {
    JsonReader reader(*json);
    reader.bounded("text", text, kMaxLineBytes);
    read = reader.status();
  }
  if (!read.ok()) {
    return Error{ErrorCode::kInvalidArgument, fmt::format("{} line {} is not a JSON object with a string \"text\": {}",
                                                          path.string(), line_number, read.error().message)};
  }
  ATOLL_RETURN_IF_ERROR(sink.text(text));
  return sink.end_of_document();
}

Status read_json_lines(const std::filesystem::path& path, TextSink& sink) {
  std::string rest;
  std::uint64_t line_number = 0;
  const Status status = for_each_piece(path, [&](std::string_view piece) -> Status {
    while (!piece.empty()) {
      const auto newline = piece.find('\n');
      rest.append(piece.substr(0, newline));
      if (rest.size() > kMaxLineBytes) {
        return Error{ErrorCode::kInvalidArgument, fmt::format("{} line {} is longer than {} MiB", path.string(),
                                                              line_number + 1, kMaxLineBytes >> 20)};
      }
      if (newline == std::string_view::npos) break;
      ATOLL_RETURN_IF_ERROR(read_json_line(path, ++line_number, rest, sink));
      rest.clear();
      piece.remove_prefix(newline + 1);
    }
    return ok_status();
  });
  return status.ok() ? read_json_line(path, ++line_number, rest, sink) : status;
}

}  // namespace

Result<std::vector<std::filesystem::path>> expand_text_inputs(const std::vector<std::filesystem::path>& inputs) {
  std::vector<std::filesystem::path> files;
  for (const std::filesystem::path& input : inputs) {
    std::error_code error;
    const auto status = std::filesystem::status(input, error);
    if (!std::filesystem::exists(status)) {
      return Error{ErrorCode::kNotFound, fmt::format("{} does not exist; check the spelling", input.string())};
    }
    if (!std::filesystem::is_directory(status)) {
      files.push_back(input);
    } else {
      ATOLL_RETURN_IF_ERROR(expand_directory(input, files));
    }
  }
  return files;
}

Status read_text_file(const std::filesystem::path& file, TextSink& sink) {
  return is_json_lines(file) ? read_json_lines(file, sink) : read_plain(file, sink);
}

}  // namespace atl
