#include "net/data/prepare_passes.h"

#include <fmt/format.h>

#include "net/base/deadline.h"

namespace atl {
namespace {

struct HashedBlock : BlockResult {
  std::vector<DocumentRecord> documents;
  std::uint64_t text_bytes = 0;
  std::uint64_t without_text = 0;  // documents
};

// Before a token is written: what is found when all text was read costs hours.
Status check_tokens(const TextFile& file, const Document& document, std::uint32_t vocab_size) {
  TokenId largest = 0;
  for (std::size_t at = 0; at + sizeof(TokenId) <= document.text.size(); at += sizeof(TokenId)) {
    TokenId token = 0;
    std::memcpy(&token, document.text.data() + at, sizeof(token));
    largest = std::max(largest, token);
  }
  if (largest < vocab_size) return ok_status();
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("{} holds token {}, and the tokenizer's vocabulary has {}: name the one that the file was "
                           "made with by --tokenizer",
                           file.path.string(), largest, vocab_size)};
}

class ReadingPass {
 public:
  ReadingPass(const PreparePass& pass, AppendFile documents, AppendFile blocks)
      : pass_(pass), documents_(std::move(documents)), blocks_(std::move(blocks)) {
    for (const TextFile& file : pass_.files) total_bytes_ += file.disk_bytes;
    for (std::size_t i = 0; i < pass_.journal.next.file; ++i) before_bytes_ += pass_.files[i].disk_bytes;
    begun_bytes_ = before_bytes_;
  }

  Status run() {
    const PipelineSteps steps{
        .open =
            [this](std::size_t file) {
              return TextBlocks::open(pass_.files[file], pass_.options.read, pass_.options.interrupt);
            },
        .make_work = [this] { return make_work(); },
        .take = [this](BlockPlace place, std::uint64_t disk_bytes,
                       BlockResult& result) { return take(place, disk_bytes, static_cast<HashedBlock&>(result)); },
        .end_of_file = [this](std::size_t file) { return end_of_file(file); }};
    ATOLL_RETURN_IF_ERROR(run_block_pipeline({.files = pass_.files.size(),
                                              .from = pass_.journal.next,
                                              .threads = pass_.options.threads,
                                              .interrupt = pass_.options.interrupt},
                                             steps));
    return checkpoint();
  }

 private:
  BlockWork make_work() const {
    return [&files = pass_.files, vocab_size = pass_.options.tokenizer.tokenizer->facts().vocab_size,
            reader = std::make_shared<DocumentReader>(pass_.options.read)](
               BlockPlace place, TextBlock block) -> Result<std::unique_ptr<BlockResult>> {
      auto hashed = std::make_unique<HashedBlock>();
      const TextFile& file = files[place.file];
      const auto hash = [&](const Document& document, std::uint64_t offset) -> Status {
        if (file.format == TextFormat::kTokens) ATOLL_RETURN_IF_ERROR(check_tokens(file, document, vocab_size));
        hashed->documents.push_back(
            {hash_of(document, offset), static_cast<std::uint32_t>(document.text.size()), document.piece ? 1u : 0u});
        hashed->text_bytes += document.text.size();
        return ok_status();
      };
      ATOLL_RETURN_IF_ERROR(reader->read(file, block, hash));
      hashed->without_text = reader->without_text();
      return std::unique_ptr<BlockResult>(std::move(hashed));
    };
  }

  Status take(BlockPlace place, std::uint64_t disk_bytes, HashedBlock& hashed) {
    const std::uint32_t entry[] = {static_cast<std::uint32_t>(place.file),
                                   static_cast<std::uint32_t>(hashed.documents.size())};
    ATOLL_RETURN_IF_ERROR(documents_.append(std::as_bytes(std::span(hashed.documents))));
    ATOLL_RETURN_IF_ERROR(blocks_.append(std::as_bytes(std::span(entry))));
    PrepareJournal& journal = pass_.journal;
    journal.next = {place.file, place.block + 1};
    journal.documents += hashed.documents.size();
    journal.blocks += 1;
    journal.text_bytes += hashed.text_bytes;
    journal.statistics.without_text += hashed.without_text;
    if (pass_.progress) {
      pass_.progress({PrepareStage::kReading, before_bytes_ + disk_bytes, total_bytes_, begun_bytes_, 0});
    }
    if (Clock::now() - saved_ < pass_.options.checkpoint_every) return ok_status();
    return checkpoint();
  }

  Status end_of_file(std::size_t file) {
    pass_.journal.next = {file + 1, 0};
    before_bytes_ += pass_.files[file].disk_bytes;
    return ok_status();
  }

  Status checkpoint() {
    ATOLL_RETURN_IF_ERROR(documents_.flush());
    ATOLL_RETURN_IF_ERROR(blocks_.flush());
    ATOLL_RETURN_IF_ERROR(pass_.journal.save(pass_.directory));
    saved_ = Clock::now();
    return ok_status();
  }

  const PreparePass& pass_;
  AppendFile documents_, blocks_;
  std::uint64_t total_bytes_ = 0, before_bytes_ = 0, begun_bytes_ = 0;  // of files on the disk
  Clock::time_point saved_ = Clock::now();
};

}  // namespace

Status read_all_text(const PreparePass& pass) {
  const PrepareJournal& journal = pass.journal;
  ATOLL_ASSIGN_OR_RETURN(AppendFile documents,
                         AppendFile::open(pass.directory / kDocumentsFile, journal.documents * sizeof(DocumentRecord)));
  ATOLL_ASSIGN_OR_RETURN(AppendFile blocks,
                         AppendFile::open(pass.directory / kBlocksFile, journal.blocks * 2 * sizeof(std::uint32_t)));
  return ReadingPass(pass, std::move(documents), std::move(blocks)).run();
}

}  // namespace atl
