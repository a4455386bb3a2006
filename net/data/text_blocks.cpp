#include "net/data/text_blocks.h"

#include <fmt/format.h>

#include <algorithm>

#include "net/data/input_stream.h"
#include "net/data/parquet_text.h"
#include "net/data/text_encoding.h"
#include "net/data/token_files.h"

namespace atl {
namespace {

constexpr std::size_t kLeastPieceBytes = 512;
constexpr std::size_t kMostPieceBytes = 16 * 1024;
constexpr std::uint64_t kPiecesOfWhatWas = 32;  // a piece is as long as what stands before it, divided by so many

// What was read of a file and is in no block yet.
class Ahead {
 public:
  explicit Ahead(std::unique_ptr<InputStream> stream) : stream_(std::move(stream)) {}

  // Reads until there are `wanted` bytes, or the file ends. What it begins with is no byte order mark.
  Status fill(std::size_t wanted) {
    if (!std::exchange(begun_, true)) ATOLL_RETURN_IF_ERROR(skip_marks());
    if (text_.size() >= wanted || ended_) return ok_status();
    const std::size_t had = text_.size();
    text_.resize(wanted);
    const auto count = stream_->read(std::span(text_).subspan(had));
    if (!count.ok()) return count.error();
    text_.resize(had + *count);
    ended_ = text_.size() < wanted;
    return ok_status();
  }
  // The first `count` bytes of it, which it gives away.
  std::string take(std::size_t count) {
    std::string rest = text_.substr(count);
    text_.resize(count);
    return std::exchange(text_, std::move(rest));
  }
  std::string_view text() const { return text_; }
  bool ended() const { return ended_; }
  std::uint64_t disk_bytes() const { return stream_->disk_bytes(); }
  std::uint64_t mark_bytes() const { return mark_bytes_; }

 private:
  Status skip_marks() {
    for (;;) {
      ATOLL_RETURN_IF_ERROR(fill(kByteOrderMark.size()));
      if (text_ != kByteOrderMark) return ok_status();
      mark_bytes_ += text_.size();
      text_.clear();
    }
  }

  std::unique_ptr<InputStream> stream_;
  std::string text_;
  std::uint64_t mark_bytes_ = 0;
  bool begun_ = false, ended_ = false;
};

class LineBlocks : public TextBlocks {
 public:
  LineBlocks(std::filesystem::path path, std::unique_ptr<InputStream> stream, const ReadOptions& options)
      : path_(std::move(path)), ahead_(std::move(stream)), block_bytes_(options.block_bytes) {}

  Result<std::optional<TextBlock>> next() override {
    std::size_t end = std::string::npos;
    for (std::size_t wanted = block_bytes_;; wanted = 2 * ahead_.text().size()) {
      const std::size_t known = ahead_.text().size();
      ATOLL_RETURN_IF_ERROR(ahead_.fill(wanted));
      if (ahead_.text().empty()) return std::optional<TextBlock>();
      if (ahead_.ended()) {
        end = ahead_.text().size();
        break;
      }
      end = ahead_.text().rfind('\n');
      if (end != std::string::npos) {
        ++end;
        break;
      }
      if (known > kMaxDocumentBytes) {
        return Error{ErrorCode::kInvalidArgument,
                     fmt::format("{} line {} is longer than {} MiB", path_.string(), line_, kMaxDocumentBytes >> 20)};
      }
    }
    TextBlock block{.bytes = ahead_.take(end),
                    .ends = {},
                    .first = line_,
                    .offset = offset_,
                    .mark_bytes = ahead_.mark_bytes(),
                    .disk_bytes = ahead_.disk_bytes()};
    line_ += static_cast<std::uint64_t>(std::count(block.bytes.begin(), block.bytes.end(), '\n'));
    offset_ += block.bytes.size();
    return std::optional(std::move(block));
  }

 private:
  const std::filesystem::path path_;
  Ahead ahead_;
  const std::size_t block_bytes_;
  std::uint64_t line_ = 1;
  std::uint64_t offset_ = 0;
};

// Where the piece of at most `most` bytes ends with which `text` begins: behind a line's end, a space, or between two
// characters of UTF-8, whichever there is first in its second half.
std::size_t end_of_piece(std::string_view text, std::size_t most) {
  if (text.size() <= most) return text.size();
  const std::string_view piece = text.substr(0, most);
  for (const char mark : {'\n', ' '}) {
    const std::size_t at = piece.rfind(mark);
    if (at != std::string_view::npos && at >= most / 2) return at + 1;
  }
  std::size_t end = most;
  while (end > most - 3 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return end;
}

class PieceBlocks : public TextBlocks {
 public:
  PieceBlocks(std::filesystem::path path, std::unique_ptr<InputStream> stream, const ReadOptions& options)
      : path_(std::move(path)),
        ahead_(std::move(stream)),
        block_bytes_(std::max(options.block_bytes, kMostPieceBytes)),
        whole_(options.whole_files) {}

  Result<std::optional<TextBlock>> next() override {
    ATOLL_RETURN_IF_ERROR(ahead_.fill(whole_ ? kMaxDocumentBytes + 1 : block_bytes_));
    if (ahead_.text().empty()) return std::optional<TextBlock>();
    if (const auto nul = ahead_.text().find('\0'); nul != std::string_view::npos) {
      return no_text_at(ahead_.mark_bytes() + offset_ + nul);
    }
    TextBlock block{.bytes = {},
                    .ends = {},
                    .first = piece_,
                    .offset = offset_,
                    .mark_bytes = ahead_.mark_bytes(),
                    .disk_bytes = ahead_.disk_bytes()};
    if (whole_ && ahead_.text().size() > kMaxDocumentBytes) {
      return Error{
          ErrorCode::kInvalidArgument,
          fmt::format("{} is longer than {} MiB, too long for one document; leave out --whole-files, which cuts it",
                      path_.string(), kMaxDocumentBytes >> 20)};
    }
    std::size_t end = 0;
    while (end < ahead_.text().size()) {
      const std::uint64_t most =
          std::clamp<std::uint64_t>((offset_ + end) / kPiecesOfWhatWas, kLeastPieceBytes, kMostPieceBytes);
      // Where it ends is known only with all that it might hold.
      if (!whole_ && !ahead_.ended() && ahead_.text().size() - end <= most) break;
      end = whole_ ? ahead_.text().size() : end + end_of_piece(ahead_.text().substr(end), most);
      block.ends.push_back(end);
    }
    block.bytes = ahead_.take(end);
    piece_ += block.ends.size();
    offset_ += end;
    return std::optional(std::move(block));
  }

 private:
  Error no_text_at(std::uint64_t byte) const {
    const std::string_view wide = offset_ == 0 ? wide_encoding_of(ahead_.text()) : std::string_view();
    if (!wide.empty()) return no_utf8(path_.string(), byte, 0, ahead_.text());
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} is not text: byte {} is 0; convert it to UTF-8 text first", path_.string(), byte)};
  }

  const std::filesystem::path path_;
  Ahead ahead_;
  const std::size_t block_bytes_;
  const bool whole_;
  std::uint64_t piece_ = 1;
  std::uint64_t offset_ = 0;
};

}  // namespace

Result<std::unique_ptr<TextBlocks>> TextBlocks::open(const TextFile& file, const ReadOptions& options,
                                                     const AbortSignal* interrupt) {
  if (file.format == TextFormat::kParquet) return open_parquet_text(file, options, interrupt);
  if (file.format == TextFormat::kTokens) return open_token_file(file, options);
  ATOLL_ASSIGN_OR_RETURN(auto stream, InputStream::open(file.path));
  if (!options.encoding.empty()) {
    ATOLL_ASSIGN_OR_RETURN(stream, decode_stream(std::move(stream), options.encoding, file.path));
  }
  if (file.format == TextFormat::kJsonLines) {
    return std::unique_ptr<TextBlocks>(std::make_unique<LineBlocks>(file.path, std::move(stream), options));
  }
  return std::unique_ptr<TextBlocks>(std::make_unique<PieceBlocks>(file.path, std::move(stream), options));
}

}  // namespace atl
