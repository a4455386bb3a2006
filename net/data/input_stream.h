// A file's bytes in order, decompressed where they are gzip (also dictzip, bgzip, several members) or zstd (also
// several frames, those to be skipped among them), which its first bytes say, not its name. One thread at a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

#include "net/base/result.h"

namespace atl {

class InputStream {
 public:
  // kInvalidArgument, which names it, for what other programs compress, pack or make tables of.
  static Result<std::unique_ptr<InputStream>> open(const std::filesystem::path& path);
  virtual ~InputStream() = default;

  // Fills `buffer` but at the end, where it may be less; 0: there is no more. kCorrupt when the compressed data is
  // damaged or was cut short, naming the file.
  Result<std::size_t> read(std::span<char> buffer);
  // Bytes of the file, as it lies on the disk, that were taken up.
  virtual std::uint64_t disk_bytes() const = 0;

 protected:
  // At least a byte of what follows; 0 at the end.
  virtual Result<std::size_t> read_some(std::span<char> buffer) = 0;
};

}  // namespace atl
