#include "net/data/input_stream.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

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
      if (ZSTD_isError(wanted) != 0) return disk_.damaged("zstd", ZSTD_getErrorName(wanted));
      frame_ended_ = wanted == 0;
      if (out.pos > 0) return out.pos;
      if (rest.empty() && !frame_ended_) return disk_.damaged("zstd", "it ends in the middle");
    }
  }

 private:
  DiskPieces disk_;
  std::unique_ptr<ZSTD_DStream, ZstdCloser> stream_;
  bool frame_ended_ = false;
};

}  // namespace

Result<std::unique_ptr<InputStream>> InputStream::open(const std::filesystem::path& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return errno_error("open", path);
  (void)::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
  DiskPieces disk(path, std::move(fd));
  ATOLL_ASSIGN_OR_RETURN(const std::string_view first, disk.rest());
  if (first.starts_with(kGzipMagic)) return std::unique_ptr<InputStream>(std::make_unique<GzipStream>(std::move(disk)));
  if (first.starts_with(kZstdMagic)) return std::unique_ptr<InputStream>(std::make_unique<ZstdStream>(std::move(disk)));
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
