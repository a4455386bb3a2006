#include "app/agent/files/log_reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

#include "net/base/file.h"
#include "net/base/unique_fd.h"

namespace atl {

std::string time_of_log_line(std::string_view line) {
  constexpr std::string_view kShape = "0000-00-00T00:00:00";
  if (line.size() < kShape.size()) return "";
  for (std::size_t i = 0; i < kShape.size(); ++i) {
    const bool digit = line[i] >= '0' && line[i] <= '9';
    if (kShape[i] == '0' ? !digit : line[i] != kShape[i]) return "";
  }
  const auto end = line.find(' ');
  return std::string(line.substr(0, std::min({end, line.size(), std::size_t{32}})));
}

std::string log_time(std::int64_t unix_seconds) {
  const std::time_t time = unix_seconds;
  std::tm local{};
  char text[32] = {};
  if (::localtime_r(&time, &local) != nullptr) std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &local);
  return text;
}

LogReader::LogReader(std::vector<Source> sources) {
  for (Source& source : sources) files_.push_back(File{.source = std::move(source), .rest = {}, .last_time = {}});
}

Result<std::vector<LogLine>> LogReader::read(const std::string& since) {
  std::vector<LogLine> lines;
  for (File& file : files_) ATOLL_RETURN_IF_ERROR(read_new(file, lines));
  std::erase_if(lines, [&](const LogLine& line) { return line.time < since; });
  std::stable_sort(lines.begin(), lines.end(), [](const LogLine& a, const LogLine& b) { return a.time < b.time; });
  first_ = false;
  return lines;
}

Status LogReader::read_new(File& file, std::vector<LogLine>& lines) {
  std::filesystem::path before = file.source.path;
  before += ".1";
  struct stat info {};
  const bool there = ::stat(file.source.path.c_str(), &info) == 0;
  if (there && file.inode == info.st_ino) {
    if (static_cast<std::uint64_t>(info.st_size) < file.offset) file.offset = 0;  // emptied by somebody
    return read_file_from(file.source.path, file, lines);
  }
  // The first time, or it was rotated: the end of the old one comes first.
  struct stat old {};
  if (::stat(before.c_str(), &old) == 0 && (file.inode == 0 || file.inode == old.st_ino)) {
    ATOLL_RETURN_IF_ERROR(read_file_from(before, file, lines));
  }
  if (!there) return ok_status();
  file.inode = info.st_ino;
  file.offset = 0;
  return read_file_from(file.source.path, file, lines);
}

Status LogReader::read_file_from(const std::filesystem::path& path, File& file, std::vector<LogLine>& lines) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return errno == ENOENT ? ok_status() : Status(errno_error("open", path));
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return errno_error("examine", path);
  const auto size = static_cast<std::uint64_t>(info.st_size);
  bool in_line = false;  // began in the middle of one
  if (size > kMaxTailBytes && file.offset < size - kMaxTailBytes) {
    file.offset = size - kMaxTailBytes;
    file.rest.clear();
    in_line = true;
  }
  char buffer[64 * 1024];
  for (;;) {
    const ssize_t count = ::pread(fd.get(), buffer, sizeof buffer, static_cast<off_t>(file.offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno_error("read", path);
    if (count == 0) return ok_status();
    file.offset += static_cast<std::uint64_t>(count);
    for (const char c : std::string_view(buffer, static_cast<std::size_t>(count))) {
      if (c != '\n') {
        if (file.rest.size() < kMaxLineBytes) file.rest += c;
        continue;
      }
      if (!std::exchange(in_line, false)) {
        if (std::string time = time_of_log_line(file.rest); !time.empty()) file.last_time = std::move(time);
        lines.push_back({file.source.name, file.last_time, file.rest});
      }
      file.rest.clear();
    }
  }
}

}  // namespace atl
