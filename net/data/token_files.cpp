#include "net/data/token_files.h"

#include <fmt/format.h>

#include <cstring>

#include "net/base/bytes.h"
#include "net/base/file.h"

namespace atl {
namespace {

constexpr std::string_view kMegatronMagic("MMIDIDX\0\0", 9);
constexpr std::uint64_t kMegatronVersion = 1;
constexpr std::size_t kMegatronHeaderBytes = 9 + 8 + 1 + 8 + 8;
constexpr std::size_t kStoredBytes = 4;  // of a token in a block

Error wrong_index(const std::filesystem::path& index, std::string_view why) {
  return Error{ErrorCode::kCorrupt,
               fmt::format("{} does not fit the file beside it: {}; copy both again", index.string(), why)};
}

// Bytes of a token by Megatron's code of its dtype; 0: one that is no whole number.
std::size_t megatron_width(unsigned code) {
  switch (code) {
    case 1: return 1;  // uint8
    case 3: return 2;  // int16
    case 4: return 4;  // int32
    case 5: return 8;  // int64
    case 8: return 2;  // uint16
    default: return 0;
  }
}

template <class T>
T value_at(ByteView bytes, std::size_t index) {
  T value{};
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));  // little-endian, like the machine
  return value;
}

// Where the documents of a file are: ranges of its bytes.
class DocumentIndex {
 public:
  virtual ~DocumentIndex() = default;
  virtual std::uint64_t documents() const = 0;
  // Appends the ranges that document `number` is made of. kCorrupt: they lie outside of the file.
  virtual Status ranges(std::uint64_t number, std::vector<std::pair<std::uint64_t, std::uint64_t>>& found) const = 0;
  virtual std::size_t token_bytes() const = 0;
};

class MegatronIndex final : public DocumentIndex {
 public:
  static Result<std::unique_ptr<DocumentIndex>> open(const std::filesystem::path& path, std::uint64_t tokens_bytes) {
    ATOLL_ASSIGN_OR_RETURN(MappedFile file, MappedFile::open(path));
    const ByteView bytes = file.bytes();
    if (bytes.size() < kMegatronHeaderBytes ||
        std::memcmp(bytes.data(), kMegatronMagic.data(), kMegatronMagic.size()) != 0) {
      return Error{ErrorCode::kInvalidArgument, fmt::format("{} is no index of Megatron-LM's", path.string())};
    }
    auto index = std::unique_ptr<MegatronIndex>(new MegatronIndex(path, std::move(file), tokens_bytes));
    ATOLL_RETURN_IF_ERROR(index->read_header());
    return std::unique_ptr<DocumentIndex>(std::move(index));
  }

  std::uint64_t documents() const override { return documents_; }
  std::size_t token_bytes() const override { return width_; }

  Status ranges(std::uint64_t number, std::vector<std::pair<std::uint64_t, std::uint64_t>>& found) const override {
    const auto first = value_at<std::uint64_t>(document_starts_, number);
    const auto end = value_at<std::uint64_t>(document_starts_, number + 1);
    if (first > end || end > sequences_) return wrong_index(path_, fmt::format("document {} has no place", number));
    for (std::uint64_t i = first; i < end; ++i) {
      const auto tokens = value_at<std::int32_t>(lengths_, i);
      const auto begin = value_at<std::uint64_t>(begins_, i);
      const std::uint64_t count = tokens < 0 ? UINT64_MAX : static_cast<std::uint64_t>(tokens) * width_;
      if (begin > tokens_bytes_ || count > tokens_bytes_ - begin) {
        return wrong_index(path_, fmt::format("sequence {} lies behind its end", i));
      }
      found.emplace_back(begin, count);
    }
    return ok_status();
  }

 private:
  MegatronIndex(std::filesystem::path path, MappedFile file, std::uint64_t tokens_bytes)
      : path_(std::move(path)), file_(std::move(file)), tokens_bytes_(tokens_bytes) {}

  Status read_header() {
    ByteReader reader(file_.bytes().subspan(kMegatronMagic.size()));
    const auto version = reader.get<std::uint64_t>();
    width_ = megatron_width(reader.get<std::uint8_t>());
    sequences_ = reader.get<std::uint64_t>();
    const auto starts = reader.get<std::uint64_t>();
    if (version != kMegatronVersion) return wrong_index(path_, fmt::format("its version is {}, not 1", version));
    if (width_ == 0) return wrong_index(path_, "its tokens are no whole numbers");
    const std::uint64_t rest = file_.bytes().size() - kMegatronHeaderBytes;
    constexpr std::uint64_t kSequenceBytes = sizeof(std::int32_t) + sizeof(std::uint64_t);
    if (starts == 0 || sequences_ > rest / kSequenceBytes || starts > rest / sizeof(std::uint64_t) ||
        sequences_ * kSequenceBytes + starts * sizeof(std::uint64_t) != rest) {
      return wrong_index(path_,
                         fmt::format("it has {} bytes for {} sequences and {} documents", rest, sequences_, starts));
    }
    const ByteView lists = file_.bytes().subspan(kMegatronHeaderBytes);
    lengths_ = lists.first(sequences_ * sizeof(std::int32_t));
    begins_ = lists.subspan(lengths_.size(), sequences_ * sizeof(std::uint64_t));
    document_starts_ = lists.subspan(lengths_.size() + begins_.size());
    documents_ = starts - 1;
    return ok_status();
  }

  const std::filesystem::path path_;
  const MappedFile file_;
  const std::uint64_t tokens_bytes_;
  std::size_t width_ = 0;
  std::uint64_t sequences_ = 0, documents_ = 0;
  ByteView lengths_, begins_, document_starts_;
};

class DatatroveIndex final : public DocumentIndex {
 public:
  static Result<std::unique_ptr<DocumentIndex>> open(const std::filesystem::path& path, std::uint64_t tokens_bytes) {
    ATOLL_ASSIGN_OR_RETURN(MappedFile file, MappedFile::open(path));
    const std::uint64_t documents = file.bytes().size() / sizeof(std::uint64_t);
    if (documents == 0 || file.bytes().size() % sizeof(std::uint64_t) != 0) {
      return wrong_index(path, "it is no list of numbers of eight bytes");
    }
    const auto tokens = value_at<std::uint64_t>(file.bytes(), documents - 1);
    const bool two = tokens_bytes % 2 == 0 && tokens == tokens_bytes / 2;
    const bool four = tokens_bytes % 4 == 0 && tokens == tokens_bytes / 4;
    if (tokens == 0 || (!two && !four)) {
      return wrong_index(path, fmt::format("it ends at {} tokens, of {} bytes of them", tokens, tokens_bytes));
    }
    return std::unique_ptr<DocumentIndex>(new DatatroveIndex(path, std::move(file), documents, two ? 2 : 4));
  }

  std::uint64_t documents() const override { return documents_; }
  std::size_t token_bytes() const override { return width_; }

  Status ranges(std::uint64_t number, std::vector<std::pair<std::uint64_t, std::uint64_t>>& found) const override {
    const std::uint64_t begin = number == 0 ? 0 : value_at<std::uint64_t>(file_.bytes(), number - 1);
    const auto end = value_at<std::uint64_t>(file_.bytes(), number);
    // No end is behind the last one, which is the file's.
    if (begin > end || end > value_at<std::uint64_t>(file_.bytes(), documents_ - 1)) {
      return wrong_index(path_, fmt::format("document {} ends before it begins", number));
    }
    found.emplace_back(begin * width_, (end - begin) * width_);
    return ok_status();
  }

 private:
  DatatroveIndex(std::filesystem::path path, MappedFile file, std::uint64_t documents, std::size_t width)
      : path_(std::move(path)), file_(std::move(file)), documents_(documents), width_(width) {}

  const std::filesystem::path path_;
  const MappedFile file_;
  const std::uint64_t documents_;
  const std::size_t width_;
};

class TokenBlocks final : public TextBlocks {
 public:
  TokenBlocks(std::filesystem::path path, MappedFile tokens, std::unique_ptr<DocumentIndex> index,
              const ReadOptions& options)
      : path_(std::move(path)),
        tokens_(std::move(tokens)),
        index_(std::move(index)),
        block_bytes_(options.block_bytes) {}

  Result<std::optional<TextBlock>> next() override {
    if (number_ == index_->documents()) return std::optional<TextBlock>();
    TextBlock block{.bytes = {}, .ends = {}, .first = number_ + 1, .offset = 0, .mark_bytes = 0, .disk_bytes = 0};
    while (number_ < index_->documents() && block.bytes.size() < block_bytes_) {
      ATOLL_RETURN_IF_ERROR(append_document(block));
      ++number_;
    }
    block.disk_bytes = read_bytes_;
    return std::optional(std::move(block));
  }

 private:
  Status append_document(TextBlock& block) {
    ranges_.clear();
    ATOLL_RETURN_IF_ERROR(index_->ranges(number_, ranges_));
    std::uint64_t tokens = 0;
    for (const auto& [begin, bytes] : ranges_) tokens += bytes / index_->token_bytes();
    if (tokens > kMaxDocumentBytes / kStoredBytes) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("document {} of {} has {} tokens, more than the {} of one that can be read", number_ + 1,
                               path_.string(), tokens, kMaxDocumentBytes / kStoredBytes)};
    }
    for (const auto& [begin, bytes] : ranges_) {
      ATOLL_RETURN_IF_ERROR(append_tokens(tokens_.bytes().subspan(begin, bytes), block.bytes));
      read_bytes_ += bytes;
    }
    block.ends.push_back(block.bytes.size());
    return ok_status();
  }

  Status append_tokens(ByteView from, std::string& to) const {
    const std::size_t width = index_->token_bytes();
    for (std::size_t at = 0; at < from.size(); at += width) {
      std::uint64_t token = 0;
      std::memcpy(&token, from.data() + at, width);
      if (token > UINT32_MAX) {
        return Error{ErrorCode::kCorrupt, fmt::format("{} document {} holds {}, which is no token", path_.string(),
                                                      number_ + 1, static_cast<std::int64_t>(token))};
      }
      const auto narrow = static_cast<std::uint32_t>(token);
      to.append(reinterpret_cast<const char*>(&narrow), sizeof(narrow));
    }
    return ok_status();
  }

  const std::filesystem::path path_;
  const MappedFile tokens_;
  const std::unique_ptr<DocumentIndex> index_;
  const std::size_t block_bytes_;
  std::uint64_t number_ = 0, read_bytes_ = 0;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges_;
};

}  // namespace

Result<std::unique_ptr<TextBlocks>> open_token_file(const TextFile& file, const ReadOptions& options) {
  ATOLL_ASSIGN_OR_RETURN(MappedFile tokens, MappedFile::open(file.path));
  const std::uint64_t bytes = tokens.bytes().size();
  const std::filesystem::path beside = token_index_of(file.path);
  auto index = beside.extension() == ".idx" ? MegatronIndex::open(beside, bytes) : DatatroveIndex::open(beside, bytes);
  if (!index.ok() && index.error().code == ErrorCode::kNotFound) {
    return Error{ErrorCode::kNotFound,
                 fmt::format("{} holds tokens, and where documents end is in {}, which is not there",
                             file.path.string(), beside.string())};
  }
  if (!index.ok()) return index.error();
  return std::unique_ptr<TextBlocks>(
      std::make_unique<TokenBlocks>(file.path, std::move(tokens), std::move(*index), options));
}

}  // namespace atl
