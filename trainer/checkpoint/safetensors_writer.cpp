#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "net/base/unique_fd.h"
#include "trainer/checkpoint/safetensors.h"

namespace atl {
namespace {

std::string header_of(std::span<const SafetensorsEntry> entries) {
  nlohmann::ordered_json header;
  header["__metadata__"] = {{"format", "pt"}};
  std::uint64_t offset = 0;
  for (const SafetensorsEntry& entry : entries) {
    const std::uint64_t end = offset + entry.values.size_bytes();
    header[entry.name] = {{"dtype", "F32"}, {"shape", entry.shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // tensors begin at a multiple of 8 bytes
  return text;
}

Status write_all(int fd, ByteView bytes, const std::filesystem::path& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno_error("write", path);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return ok_status();
}

Status write_contents(int fd, std::span<const SafetensorsEntry> entries, const std::filesystem::path& path) {
  const std::string header = header_of(entries);
  const std::uint64_t length = header.size();
  ATOLL_RETURN_IF_ERROR(write_all(fd, std::as_bytes(std::span(&length, 1)), path));
  ATOLL_RETURN_IF_ERROR(write_all(fd, as_bytes(header), path));
  for (const SafetensorsEntry& entry : entries) {
    ATOLL_RETURN_IF_ERROR(write_all(fd, std::as_bytes(entry.values), path));
  }
  if (::fsync(fd) != 0) return errno_error("flush", path);
  return ok_status();
}

}  // namespace

Status write_safetensors(const std::filesystem::path& path, std::span<const SafetensorsEntry> entries) {
  std::filesystem::path temporary = path;
  temporary += fmt::format(".new.{}", ::getpid());
  UniqueFd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!fd) return errno_error("create", temporary);
  Status status = write_contents(fd.get(), entries, temporary);
  fd.reset();
  if (status.ok() && ::rename(temporary.c_str(), path.c_str()) != 0) status = errno_error("replace", path);
  if (!status.ok()) ::unlink(temporary.c_str());
  return status;
}

}  // namespace atl
