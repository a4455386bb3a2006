#include "app/agent/files/log_reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <iterator>
#include <utility>

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

LogReader::LogReader(std::vector<Source> sources, const std::vector<LogPosition>& positions, std::uint64_t max_bytes)
    : max_bytes_(max_bytes) {
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const LogPosition from = i < positions.size() ? positions[i] : LogPosition();
    files_.push_back(File{.source = std::move(sources[i]), .whole = from, .offset = from.offset, .rest = {}});
  }
}

Result<std::vector<std::vector<LogLine>>> LogReader::read_each() {
  std::vector<std::vector<LogLine>> lines(files_.size());
  for (std::size_t i = 0; i < files_.size(); ++i) ATOLL_RETURN_IF_ERROR(read_new(files_[i], lines[i]));
  return lines;
}

Result<std::vector<LogLine>> LogReader::read(const std::string& since) {
  ATOLL_ASSIGN_OR_RETURN(const auto each, read_each());
  std::vector<LogLine> lines;
  for (const auto& of_source : each) {
    std::ranges::copy_if(of_source, std::back_inserter(lines), [&](const LogLine& line) { return line.time >= since; });
  }
  std::stable_sort(lines.begin(), lines.end(), [](const LogLine& a, const LogLine& b) { return a.time < b.time; });
  return lines;
}

std::vector<LogPosition> LogReader::positions() const {
  std::vector<LogPosition> positions;
  for (const File& file : files_) positions.push_back(file.whole);
  return positions;
}

Status LogReader::read_new(File& file, std::vector<LogLine>& lines) {
  std::filesystem::path before = file.source.path;
  before += ".1";
  struct stat info {};
  const bool there = ::stat(file.source.path.c_str(), &info) == 0;
  if (there && file.whole.inode == info.st_ino) {
    if (static_cast<std::uint64_t>(info.st_size) < file.offset) {  // emptied by somebody
      file.offset = file.whole.offset = 0;
      file.rest.clear();
    }
    return read_file_from(file.source.path, /*tail=*/false, file, lines);
  }
  // The first time, or it was rotated: the end of the old one comes first.
  const bool first = file.whole.inode == 0;
  struct stat old {};
  if (::stat(before.c_str(), &old) == 0 && (first || file.whole.inode == old.st_ino)) {
    file.whole.inode = old.st_ino;
    ATOLL_RETURN_IF_ERROR(read_file_from(before, first, file, lines));
    if (file.offset < static_cast<std::uint64_t>(old.st_size)) return ok_status();  // the rest of it comes first
  }
  if (!there) return ok_status();
  file.whole = {info.st_ino, 0, file.whole.last_time};
  file.offset = 0;
  file.rest.clear();
  return read_file_from(file.source.path, first, file, lines);
}

Status LogReader::read_file_from(const std::filesystem::path& path, bool tail, File& file,
                                 std::vector<LogLine>& lines) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return errno == ENOENT ? ok_status() : Status(errno_error("open", path));
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return errno_error("examine", path);
  const auto size = static_cast<std::uint64_t>(info.st_size);
  bool in_line = false;  // began in the middle of one
  if (tail && size > max_bytes_) {
    file.offset = size - max_bytes_;
    file.rest.clear();
    in_line = true;
  }
  const std::uint64_t end = file.offset + max_bytes_;
  char buffer[64 * 1024];
  while (file.offset < end) {
    const ssize_t count = ::pread(fd.get(), buffer, std::min<std::uint64_t>(sizeof buffer, end - file.offset),
                                  static_cast<off_t>(file.offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno_error("read", path);
    if (count == 0) return ok_status();
    for (const char c : std::string_view(buffer, static_cast<std::size_t>(count))) {
      ++file.offset;
      if (c == '\n') {
        take_line(file, !std::exchange(in_line, false), lines);
      } else if (file.rest.size() < kMaxLineBytes) {
        file.rest += c;
      }
    }
  }
  return ok_status();
}

void LogReader::take_line(File& file, bool whole, std::vector<LogLine>& lines) {
  file.whole.offset = file.offset;
  if (whole) {
    if (std::string time = time_of_log_line(file.rest); !time.empty()) file.whole.last_time = std::move(time);
    lines.push_back({file.source.name, file.whole.last_time, file.rest, file.whole});
  }
  file.rest.clear();
}

}  // namespace atl
