#include "net/data/input_stream.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <vector>

#include "net/base/file.h"
#include "net/base/unique_fd.h"

namespace atl {
namespace {

constexpr std::size_t kDiskPieceBytes = 256 * 1024;
constexpr std::string_view kGzipMagic = "\x1f\x8b";
constexpr std::string_view kZstdMagic = "\x28\xb5\x2f\xfd";
constexpr std::string_view kZstdSkippableMagic = "\x2a\x4d\x18";  // behind a byte of 0x50 to 0x5f (RFC 8878, 3.1.2)

// What is no text, and not read either, by what stands at a place in it.
struct OtherFormat {
  std::size_t place;
  std::string_view magic, name, advice;
};
using namespace std::string_view_literals;
constexpr std::string_view kDecompress = "decompress it, or compress it by zstd or gzip instead";
constexpr std::string_view kUnpack = "unpack it, and name what is in it";
constexpr OtherFormat kOtherFormats[] = {
    {0, "\xfd\x37zXZ\0"sv, "xz", kDecompress},
    {4, "1AY&SY"sv, "bzip2", kDecompress},
    {4, "\x17rE8P\x90"sv, "bzip2", kDecompress},  // of nothing
    {0, "\x04\x22\x4d\x18"sv, "lz4", kDecompress},
    {0, "\x02\x21\x4c\x18"sv, "lz4", kDecompress},  // of its first versions
    {0, "LZIP\x01"sv, "lzip", kDecompress},
    {0, "\x5d\0\0"sv, "lzma", kDecompress},
    {0, "\xff\x06\0\0sNaPpY"sv, "Snappy", kDecompress},
    {0, "\x1f\x9d"sv, "compress", kDecompress},
    {0, "PK\x03\x04"sv, "zip", kUnpack},
    {0, "7z\xbc\xaf\x27\x1c"sv, "7-Zip", kUnpack},
    {0, "Rar!\x1a\x07"sv, "RAR", kUnpack},
    {257, "ustar\0"sv, "tar", kUnpack},
    {257, "ustar  \0"sv, "tar", kUnpack},
    {0, "PAR1\x15"sv, "Parquet", "give it a name that ends in .parquet"},
    {0, "ARROW1\0\0"sv, "Arrow IPC", "convert it to Parquet"},
};
constexpr int kGzipWindow = 15 + 16;  // the largest, and a gzip header before it (zlib.h, inflateInit2)

// The file as it lies on the disk, a piece at a time.
class DiskPieces {
 public:
  DiskPieces(std::filesystem::path path, UniqueFd fd)
      : path_(std::move(path)), fd_(std::move(fd)), buffer_(kDiskPieceBytes) {}

  // What is not taken yet; empty at the end of the file.
  Result<std::string_view> rest() {
    if (first_ == end_) {
      ssize_t count = 0;
      do count = ::read(fd_.get(), buffer_.data(), buffer_.size());
      while (count < 0 && errno == EINTR);
      if (count < 0) return errno_error("read", path_);
      first_ = 0;
      end_ = static_cast<std::size_t>(count);
    }
    return std::string_view(buffer_.data() + first_, end_ - first_);
  }
  void take(std::size_t count) {
    first_ += count;
    taken_ += count;
  }
  std::uint64_t taken() const { return taken_; }
  Error not_read(const OtherFormat& format) const {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} is {} data, which is not read: {}", path_.string(), format.name, format.advice)};
  }
  Error damaged(std::string_view format, std::string_view why) const {
    return Error{ErrorCode::kCorrupt,
                 fmt::format("{} is damaged {} data ({}); get the file again", path_.string(), format, why)};
  }

 private:
  std::filesystem::path path_;
  UniqueFd fd_;
  std::vector<char> buffer_;
  std::size_t first_ = 0, end_ = 0;
  std::uint64_t taken_ = 0;
};

class PlainStream : public InputStream {
 public:
  explicit PlainStream(DiskPieces disk) : disk_(std::move(disk)) {}
  std::uint64_t disk_bytes() const override { return disk_.taken(); }

 protected:
  Result<std::size_t> read_some(std::span<char> buffer) override {
    ATOLL_ASSIGN_OR_RETURN(const std::string_view rest, disk_.rest());
    const std::size_t count = std::min(rest.size(), buffer.size());
    std::copy_n(rest.data(), count, buffer.data());
    disk_.take(count);
    return count;
  }

 private:
  DiskPieces disk_;
};

class GzipStream : public InputStream {
 public:
  explicit GzipStream(DiskPieces disk) : disk_(std::move(disk)) {
    usable_ = inflateInit2(&inflate_, kGzipWindow) == Z_OK;
  }
  ~GzipStream() override {
    if (usable_) inflateEnd(&inflate_);
  }
  std::uint64_t disk_bytes() const override { return disk_.taken(); }

 protected:
  Result<std::size_t> read_some(std::span<char> buffer) override {
    if (!usable_) return Error{ErrorCode::kInternal, "zlib cannot begin to decompress: out of memory"};
    for (;;) {
      ATOLL_ASSIGN_OR_RETURN(std::string_view rest, disk_.rest());
      if (rest.empty()) {
        if (between_members_) return std::size_t{0};
        return disk_.damaged("gzip", "it ends in the middle");
      }
      if (between_members_ && !began_) {
        // tar and tapes fill up with zeros.
        if (rest.front() == '\0') {
          disk_.take(std::min(rest.find_first_not_of('\0'), rest.size()));
          continue;
        }
        (void)inflateReset(&inflate_);
        began_ = true;
      }
      between_members_ = false;
      ATOLL_ASSIGN_OR_RETURN(const std::size_t made, inflate_some(rest, buffer));
      if (made > 0) return made;
    }
  }

 private:
  Result<std::size_t> inflate_some(std::string_view rest, std::span<char> buffer) {
    inflate_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(rest.data()));
    inflate_.avail_in = static_cast<uInt>(rest.size());
    inflate_.next_out = reinterpret_cast<Bytef*>(buffer.data());
    inflate_.avail_out = static_cast<uInt>(std::min<std::size_t>(buffer.size(), 1u << 30));
    const uInt room = inflate_.avail_out;
    const int code = inflate(&inflate_, Z_NO_FLUSH);
    disk_.take(rest.size() - inflate_.avail_in);
    if (code == Z_STREAM_END) {
      between_members_ = true;
      began_ = false;
    } else if (code != Z_OK) {
      return disk_.damaged("gzip", inflate_.msg != nullptr ? inflate_.msg : "it cannot be decompressed");
    }
    return static_cast<std::size_t>(room - inflate_.avail_out);
  }

  DiskPieces disk_;
  z_stream inflate_{};
  bool usable_ = false;
  bool between_members_ = false;
  bool began_ = true;
};

struct ZstdCloser {
  void operator()(ZSTD_DStream* stream) const noexcept { ZSTD_freeDStream(stream); }
};

class ZstdStream : public InputStream {
 public:
  explicit ZstdStream(DiskPieces disk) : disk_(std::move(disk)), stream_(ZSTD_createDStream()) {
    // Corpora are compressed with windows of up to 2 GiB (zstd --ultra, --long=31).
    if (stream_) (void)ZSTD_DCtx_setParameter(stream_.get(), ZSTD_d_windowLogMax, 31);
  }
  std::uint64_t disk_bytes() const override { return disk_.taken(); }

 protected:
  Result<std::size_t> read_some(std::span<char> buffer) override {
    if (!stream_) return Error{ErrorCode::kInternal, "zstd cannot begin to decompress: out of memory"};
    for (;;) {
      ATOLL_ASSIGN_OR_RETURN(const std::string_view rest, disk_.rest());
      if (rest.empty() && frame_ended_) return std::size_t{0};
      ZSTD_inBuffer in{rest.data(), rest.size(), 0};
      ZSTD_outBuffer out{buffer.data(), buffer.size(), 0};
      const std::size_t wanted = ZSTD_decompressStream(stream_.get(), &out, &in);
      disk_.take(in.pos);
      if (ZSTD_isError(wanted) != 0) return why_not(wanted);
      frame_ended_ = wanted == 0;
      if (out.pos > 0) return out.pos;
      if (rest.empty() && !frame_ended_) return disk_.damaged("zstd", "it ends in the middle");
    }
  }

 private:
  Error why_not(std::size_t error) const {
    if (ZSTD_getErrorCode(error) != ZSTD_error_dictionary_wrong) return disk_.damaged("zstd", ZSTD_getErrorName(error));
    return disk_.not_read({0, {}, "zstd", "it was compressed with a dictionary; decompress it with that (zstd -D)"});
  }

  DiskPieces disk_;
  std::unique_ptr<ZSTD_DStream, ZstdCloser> stream_;
  bool frame_ended_ = false;
};

// zstd's library knows all of its frames: also those of its versions before 1.0, and those to be skipped, with which
// pzstd and seekable files begin. What is shorter than a frame's header is told by the magic number.
bool is_zstd(std::string_view first) {
  if (ZSTD_getFrameContentSize(first.data(), first.size()) != ZSTD_CONTENTSIZE_ERROR) return !first.empty();
  const bool skippable = first.size() >= 4 && (static_cast<unsigned char>(first[0]) & 0xf0) == 0x50 &&
                         first.substr(1, 3) == kZstdSkippableMagic;
  return first.starts_with(kZstdMagic) || skippable;
}

const OtherFormat* other_format_of(std::string_view first) {
  for (const OtherFormat& format : kOtherFormats) {
    if (first.size() > format.place && first.substr(format.place).starts_with(format.magic)) return &format;
  }
  return nullptr;
}

}  // namespace

Result<std::unique_ptr<InputStream>> InputStream::open(const std::filesystem::path& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return errno_error("open", path);
  (void)::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
  DiskPieces disk(path, std::move(fd));
  ATOLL_ASSIGN_OR_RETURN(const std::string_view first, disk.rest());
  if (first.starts_with(kGzipMagic)) return std::unique_ptr<InputStream>(std::make_unique<GzipStream>(std::move(disk)));
  if (is_zstd(first)) return std::unique_ptr<InputStream>(std::make_unique<ZstdStream>(std::move(disk)));
  if (const OtherFormat* const other = other_format_of(first)) return disk.not_read(*other);
  return std::unique_ptr<InputStream>(std::make_unique<PlainStream>(std::move(disk)));
}

Result<std::size_t> InputStream::read(std::span<char> buffer) {
  std::size_t filled = 0;
  while (filled < buffer.size()) {
    ATOLL_ASSIGN_OR_RETURN(const std::size_t count, read_some(buffer.subspan(filled)));
    if (count == 0) break;
    filled += count;
  }
  return filled;
}

}  // namespace atl
