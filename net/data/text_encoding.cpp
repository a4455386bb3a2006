#include "net/data/text_encoding.h"

#include <fmt/format.h>
#include <iconv.h>
#include <simdjson.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <vector>

#include "net/base/printable.h"
#include "net/tokenizer/unicode_classes.h"

namespace atl {
namespace {

constexpr std::size_t kLongestName = 64;  // of an encoding
constexpr std::size_t kDecodedBytes = 256 * 1024;
constexpr std::string_view kSwappedMark = "\xef\xbf\xbe";  // U+FFFE, which is no character
constexpr std::size_t kLookedAt = 4096;                    // bytes of a file's beginning, to guess its encoding

const auto kNoConverter = reinterpret_cast<iconv_t>(-1);

// iconv's, which closes itself.
class Converter {
 public:
  // Names that people write, "latin-1" for instance, may lack in iconv's list: then without their dashes.
  static std::optional<Converter> open(std::string_view encoding) {
    const bool plain = !encoding.empty() && encoding.size() <= kLongestName &&
                       std::ranges::none_of(encoding, [](char c) { return c == '/' || c == '\0' || c <= ' '; });
    if (!plain) return std::nullopt;  // a slash, and what follows it asks for approximations
    std::string name(encoding);
    iconv_t converter = ::iconv_open("UTF-8", name.c_str());
    if (converter == kNoConverter) {
      std::erase_if(name, [](char c) { return c == '-' || c == '_'; });
      converter = ::iconv_open("UTF-8", name.c_str());
    }
    if (converter == kNoConverter) return std::nullopt;
    return Converter(converter);
  }
  Converter(Converter&& other) noexcept : converter_(std::exchange(other.converter_, kNoConverter)) {}
  Converter& operator=(Converter&&) = delete;
  ~Converter() {
    if (converter_ != kNoConverter) ::iconv_close(converter_);
  }

  iconv_t get() const { return converter_; }

 private:
  explicit Converter(iconv_t converter) : converter_(converter) {}
  iconv_t converter_;
};

class DecodedStream : public InputStream {
 public:
  DecodedStream(std::unique_ptr<InputStream> stream, Converter converter, std::string encoding,
                std::filesystem::path path)
      : stream_(std::move(stream)),
        converter_(std::move(converter)),
        encoding_(std::move(encoding)),
        path_(std::move(path)),
        decoded_(kDecodedBytes) {}
  std::uint64_t disk_bytes() const override { return stream_->disk_bytes(); }

 protected:
  Result<std::size_t> read_some(std::span<char> buffer) override {
    while (begin_ == end_ && !flushed_) ATOLL_RETURN_IF_ERROR(decode_more());
    const std::size_t count = std::min(buffer.size(), end_ - begin_);
    std::copy_n(decoded_.data() + begin_, count, buffer.data());
    begin_ += count;
    return count;
  }

 private:
  Status decode_more() {
    begin_ = 0;
    char* to = decoded_.data();
    std::size_t room = decoded_.size();
    if (!ended_ && rest_.size() < kDecodedBytes) {
      const std::size_t had = rest_.size();
      rest_.resize(had + kDecodedBytes);
      const auto count = stream_->read(std::span(rest_).subspan(had));
      if (!count.ok()) return count.error();
      rest_.resize(had + *count);
      ended_ = *count == 0;
    }
    const bool is_first = offset_ == 0;
    if (is_first && rest_.starts_with(kByteOrderMark)) return other_mark("UTF-8");
    char* from = rest_.data();
    std::size_t left = rest_.size();
    // At the end: what puts an encoding with states into its first one.
    const bool last = ended_ && left == 0;
    const std::size_t result = ::iconv(converter_.get(), last ? nullptr : &from, last ? nullptr : &left, &to, &room);
    const int why = result == static_cast<std::size_t>(-1) ? errno : 0;
    const std::size_t taken = rest_.size() - left;
    rest_.erase(0, taken);
    offset_ += taken;
    end_ = decoded_.size() - room;
    flushed_ = last && why == 0;
    if (is_first && std::string_view(decoded_.data(), end_).starts_with(kSwappedMark)) {
      return other_mark("the other byte order");
    }
    if (why == EILSEQ || (why == EINVAL && ended_)) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("{} cannot be read: from byte {} on it is no {}{}; name its encoding by --encoding",
                               path_.string(), offset_, encoding_, why == EINVAL ? " (it ends in the middle)" : "")};
    }
    return ok_status();
  }

  // What follows would be read as other characters than it is.
  Error other_mark(std::string_view of) const {
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("{} begins with the byte order mark of {}, so it is no {}; name its encoding by --encoding",
                    path_.string(), of, encoding_)};
  }

  std::unique_ptr<InputStream> stream_;
  const Converter converter_;
  const std::string encoding_;
  const std::filesystem::path path_;
  std::string rest_;          // read, and not decoded
  std::uint64_t offset_ = 0;  // of it in the file's text
  std::vector<char> decoded_;
  std::size_t begin_ = 0, end_ = 0;  // what of it was not given
  bool ended_ = false, flushed_ = false;
};

}  // namespace

std::string_view without_byte_order_mark(std::string_view text) {
  while (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  return text;
}

std::optional<std::size_t> broken_utf8_at(std::string_view text) {
  if (simdjson::validate_utf8(text.data(), text.size())) return std::nullopt;
  const auto* const begin = reinterpret_cast<const std::uint8_t*>(text.data());
  const auto* const end = begin + text.size();
  for (const std::uint8_t* at = begin; at < end;) {
    const TextChar next = decode_char(at, end);
    if (next.code_point == kNoCodePoint) return static_cast<std::size_t>(at - begin);
    at += next.bytes;
  }
  return std::nullopt;
}

std::string_view wide_encoding_of(std::string_view beginning) {
  using namespace std::string_view_literals;
  if (beginning.starts_with("\xff\xfe\0\0"sv)) return "UTF-32";
  if (beginning.starts_with("\0\0\xfe\xff"sv)) return "UTF-32";
  if (beginning.starts_with("\xff\xfe"sv) || beginning.starts_with("\xfe\xff"sv)) return "UTF-16";
  const std::string_view looked_at = beginning.substr(0, kLookedAt);
  std::size_t zeros[2] = {0, 0};
  for (std::size_t i = 0; i < looked_at.size(); ++i) zeros[i % 2] += looked_at[i] == '\0' ? 1 : 0;
  const std::size_t many = looked_at.size() / 4;  // half of the bytes of English
  if (many > 0 && zeros[1] > many && zeros[0] == 0) return "UTF-16LE";
  if (many > 0 && zeros[0] > many && zeros[1] == 0) return "UTF-16BE";
  return {};
}

Error no_utf8(std::string_view what, std::uint64_t at, unsigned char byte, std::string_view beginning) {
  const std::string_view wide = wide_encoding_of(beginning);
  const std::string advice =
      wide.empty() ? "if it is in another encoding, name that by --encoding (latin1, windows-1252, ...), else mend it"
                   : fmt::format("it looks like {}: say so by --encoding {}", wide, wide);
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("{} is no UTF-8: byte {} of the file's text is {:#04x}; {}", what, at, byte, advice)};
}

bool is_utf8_name(std::string_view encoding) {
  std::string name;
  for (const char c : encoding) {
    if (c != '-' && c != '_') name += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  }
  return name == "utf8" || name == "utf8sig";  // Python's, where there is a byte order mark
}

Status check_encoding(const std::string& encoding) {
  if (is_utf8_name(encoding) || Converter::open(encoding)) return ok_status();
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("this system knows no encoding '{}'; 'iconv --list' has those that it knows, like latin1, "
                           "windows-1252, UTF-16, Shift_JIS",
                           printable(encoding))};
}

Result<std::unique_ptr<InputStream>> decode_stream(std::unique_ptr<InputStream> stream, const std::string& encoding,
                                                   const std::filesystem::path& path) {
  ATOLL_RETURN_IF_ERROR(check_encoding(encoding));
  if (is_utf8_name(encoding)) return stream;
  return std::unique_ptr<InputStream>(
      std::make_unique<DecodedStream>(std::move(stream), *Converter::open(encoding), encoding, path));
}

}  // namespace atl
