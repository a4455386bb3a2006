#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "net/base/deadline.h"
#include "net/data/chat.h"
#include "net/data/prepare_passes.h"
#include "net/data/token_shard.h"

namespace atl {
namespace {

// Where in the order of all documents each block begins.
class BlockTable {
 public:
  BlockTable(ByteView entries, std::size_t files) : first_block_(files + 1, 0) {
    ByteReader reader(entries);
    std::uint64_t document = 0;
    while (!reader.at_end()) {
      const auto file = reader.get<std::uint32_t>();
      const auto documents = reader.get<std::uint32_t>();
      if (!reader.ok() || file >= files) break;
      first_document_.push_back(document);
      document += documents;
      first_block_[file + 1] = first_document_.size();
    }
    first_document_.push_back(document);
    for (std::size_t i = 1; i <= files; ++i) first_block_[i] = std::max(first_block_[i], first_block_[i - 1]);
  }

  bool has(BlockPlace place) const { return index_of(place) < first_block_[place.file + 1]; }
  std::uint64_t first(BlockPlace place) const { return first_document_[index_of(place)]; }
  std::uint64_t end(BlockPlace place) const { return first_document_[index_of(place) + 1]; }
  std::uint64_t end_of_file(std::size_t file) const { return first_document_[first_block_[file + 1]]; }
  bool ended(BlockPlace next) const { return index_of(next) == first_block_[next.file + 1]; }

 private:
  std::uint64_t index_of(BlockPlace place) const { return first_block_[place.file] + place.block; }

  std::vector<std::uint64_t> first_block_;  // of each file, among all blocks
  std::vector<std::uint64_t> first_document_;
};

// Text becomes tokens here, and statistics.
struct TokenBlock : BlockResult {
  Bytes train, validation;
  std::uint64_t text_bytes = 0;  // duplicates among it
  DataStatistics statistics;     // but for the sources
  SourceStatistics source;
};

void append_tokens(const std::vector<std::uint32_t>& tokens, std::uint32_t token_bytes, Bytes& to) {
  const std::size_t before = to.size();
  to.resize(before + tokens.size() * token_bytes);
  std::byte* at = to.data() + before;
  if (token_bytes == 4) {
    std::memcpy(at, tokens.data(), tokens.size() * 4);
    return;
  }
  for (const std::uint32_t token : tokens) {
    const auto narrow = static_cast<std::uint16_t>(token);
    std::memcpy(at, &narrow, sizeof(narrow));
    at += sizeof(narrow);
  }
}

void add_split(const SplitStatistics& from, SplitStatistics& to) {
  to.documents += from.documents;
  to.text_bytes += from.text_bytes;
  to.tokens += from.tokens;
}

Error text_changed(const TextFile& file) {
  return Error{ErrorCode::kIo, fmt::format("{} changed while it was being read; leave it alone and start again with "
                                           "--restart",
                                           file.path.string())};
}

// prepare_dataset has seen that the tokenizer has them.
std::optional<ChatTokens> chat_tokens(const PrepareOptions& options) {
  if (!options.read.chat) return std::nullopt;
  return llama3_chat_tokens(*options.tokenizer.tokenizer).value();
}

// One thread's.
class BlockTokenizer {
 public:
  // `token_lengths`: bytes of text that each token stands for; empty: no file is of tokens.
  BlockTokenizer(const PreparePass& pass, const DocumentPlan& plan, const BlockTable& table, std::uint32_t token_bytes,
                 const std::vector<std::uint32_t>& token_lengths)
      : pass_(pass),
        plan_(plan),
        table_(table),
        token_bytes_(token_bytes),
        token_lengths_(token_lengths),
        reader_(pass.options.read),
        chat_tokens_(chat_tokens(pass.options)),
        scratch_(pass.options.tokenizer.tokenizer->make_scratch()) {}

  Result<std::unique_ptr<BlockResult>> work(BlockPlace place, TextBlock block) {
    const TextFile& file = pass_.files[place.file];
    if (!table_.has(place)) return text_changed(file);
    auto made = std::make_unique<TokenBlock>();
    std::uint64_t number = table_.first(place);
    const std::uint64_t end = table_.end(place), end_of_file = table_.end_of_file(place.file);
    const std::uint64_t begin_of_file = table_.first({place.file, 0});
    ATOLL_RETURN_IF_ERROR(reader_.read(file, block, [&](const Document& document, std::uint64_t) -> Status {
      if (number >= end) return text_changed(file);
      // A text that goes on in the same split is one document there.
      const auto is_alike = [&](std::uint64_t other) { return document.piece && plan_.at(other) == plan_.at(number); };
      const bool begins = number == begin_of_file || !is_alike(number - 1);
      const bool ends = number + 1 == end_of_file || !is_alike(number + 1);
      const Status added = add(file, document, plan_.at(number), begins, ends, *made);
      ++number;
      if (added.ok()) return added;
      return added.error().with_context(
          fmt::format("{}, document {} of those with text", file.path.string(), number - begin_of_file));
    }));
    if (number != end) return text_changed(file);
    return std::unique_ptr<BlockResult>(std::move(made));
  }

 private:
  Status add(const TextFile& file, const Document& document, DocumentFate fate, bool begins, bool ends,
             TokenBlock& made) {
    const std::uint64_t bytes = document.text.size();
    made.text_bytes += bytes;
    if (fate == DocumentFate::kDuplicate) {
      made.statistics.duplicates += 1;
      made.statistics.duplicate_bytes += bytes;
      made.source.duplicates += 1;
      return ok_status();
    }
    ATOLL_ASSIGN_OR_RETURN(const std::uint64_t text_bytes, file.format == TextFormat::kTokens
                                                               ? take_tokens(file, document)
                                                               : encode(document, begins, ends));
    const bool train = fate == DocumentFate::kTrain;
    append_tokens(tokens_, token_bytes_, train ? made.train : made.validation);
    add_split({1, text_bytes, tokens_.size()}, train ? made.statistics.train : made.statistics.validation);
    const auto bin = static_cast<std::size_t>(std::bit_width(std::max<std::size_t>(tokens_.size(), 1)) - 1);
    made.statistics.lengths[std::min(bin, kLengthBins - 1)] += 1;
    made.source.documents += 1;
    made.source.text_bytes += text_bytes;
    made.source.tokens += tokens_.size();
    return ok_status();
  }

  // Both leave the document's tokens in tokens_, and return the bytes of its text.
  Result<std::uint64_t> encode(const Document& document, bool begins, bool ends) {
    const DatasetTokenizer& tokenizer = pass_.options.tokenizer;
    tokens_.clear();
    if (chat_tokens_) return encode_chat(chat_of(document.text));
    if (begins && tokenizer.begin_of_text) tokens_.push_back(*tokenizer.begin_of_text);
    // A name of a special token is text: whoever writes it into a page ends no document.
    ATOLL_RETURN_IF_ERROR(tokenizer.tokenizer->encode(document.text, SpecialText::kIsText, *scratch_, tokens_));
    if (ends) tokens_.push_back(tokenizer.end_of_text);
    return document.text.size();
  }
  Result<std::uint64_t> encode_chat(const std::vector<ChatMessage>& chat) {
    const DatasetTokenizer& tokenizer = pass_.options.tokenizer;
    ATOLL_RETURN_IF_ERROR(append_chat(chat, *chat_tokens_, *tokenizer.tokenizer, *scratch_, tokens_));
    tokens_.push_back(tokenizer.end_of_text | kUncountedBit);
    std::uint64_t text_bytes = 0;
    for (const ChatMessage& message : chat) text_bytes += message.content.size();
    return text_bytes;
  }
  // Of another program: with the tokens before and behind it, where it has them already, as they are.
  Result<std::uint64_t> take_tokens(const TextFile& file, const Document& document) {
    const DatasetTokenizer& tokenizer = pass_.options.tokenizer;
    tokens_.assign(document.text.size() / sizeof(TokenId), 0);
    std::memcpy(tokens_.data(), document.text.data(), document.text.size());
    std::uint64_t text_bytes = 0;
    for (const TokenId token : tokens_) {
      if (token >= token_lengths_.size()) return text_changed(file);  // it was looked at when all text was read
      text_bytes += token_lengths_[token];
    }
    if (tokenizer.begin_of_text && tokens_.front() != *tokenizer.begin_of_text) {
      tokens_.insert(tokens_.begin(), *tokenizer.begin_of_text);
    }
    if (tokens_.back() != tokenizer.end_of_text) tokens_.push_back(tokenizer.end_of_text);
    return text_bytes;
  }

  const PreparePass& pass_;
  const DocumentPlan& plan_;
  const BlockTable& table_;
  const std::uint32_t token_bytes_;
  const std::vector<std::uint32_t>& token_lengths_;
  DocumentReader reader_;
  const std::optional<ChatTokens> chat_tokens_;  // where documents are chats
  const std::unique_ptr<TokenizerScratch> scratch_;
  std::vector<TokenId> tokens_;
};

ShardFormat shard_format(const PrepareOptions& options) {
  const std::uint32_t vocab_size = options.tokenizer.tokenizer->facts().vocab_size;
  constexpr std::uint32_t kMostOf16Bits = 65536;
  const bool marked = options.read.chat;
  return {!marked && vocab_size <= kMostOf16Bits ? 2u : 4u, vocab_size, options.shard_tokens, marked};
}

std::vector<std::uint32_t> token_lengths(const PreparePass& pass) {
  const auto is_tokens = [](const TextFile& file) { return file.format == TextFormat::kTokens; };
  std::vector<std::uint32_t> lengths;
  if (std::none_of(pass.files.begin(), pass.files.end(), is_tokens)) return lengths;
  const Tokenizer& tokenizer = *pass.options.tokenizer.tokenizer;
  for (TokenId id = 0; id < tokenizer.facts().vocab_size; ++id) {
    lengths.push_back(static_cast<std::uint32_t>(tokenizer.within_text(id).size()));
  }
  return lengths;
}

class WritingPass {
 public:
  WritingPass(const PreparePass& pass, const DocumentPlan& plan, ByteView blocks)
      : pass_(pass),
        plan_(plan),
        table_(blocks, pass.files.size()),
        format_(shard_format(pass.options)),
        token_lengths_(token_lengths(pass)),
        train_(pass.directory, "train", format_, pass.journal.train),
        validation_(pass.directory, "validation", format_, pass.journal.validation),
        begun_bytes_(pass.journal.done_bytes) {}

  Status run() {
    const PipelineSteps steps{
        .open =
            [this](std::size_t file) {
              return TextBlocks::open(pass_.files[file], pass_.options.read, pass_.options.interrupt);
            },
        .make_work = [this]() -> BlockWork {
          auto worker = std::make_shared<BlockTokenizer>(pass_, plan_, table_, format_.token_bytes, token_lengths_);
          return [worker](BlockPlace place, TextBlock block) { return worker->work(place, std::move(block)); };
        },
        .take = [this](BlockPlace place, std::uint64_t,
                       BlockResult& result) { return take(place, static_cast<TokenBlock&>(result)); },
        .end_of_file = [this](std::size_t file) -> Status {
          const bool whole =
              pass_.journal.next.file == file ? table_.ended(pass_.journal.next) : table_.ended({file, 0});
          if (!whole) return text_changed(pass_.files[file]);
          pass_.journal.next = {file + 1, 0};
          return ok_status();
        }};
    ATOLL_RETURN_IF_ERROR(run_block_pipeline({.files = pass_.files.size(),
                                              .from = pass_.journal.next,
                                              .threads = pass_.options.threads,
                                              .interrupt = pass_.options.interrupt},
                                             steps));
    ATOLL_ASSIGN_OR_RETURN(pass_.journal.train.shards, train_.finish());
    ATOLL_ASSIGN_OR_RETURN(pass_.journal.validation.shards, validation_.finish());
    return ok_status();
  }

 private:
  Status take(BlockPlace place, TokenBlock& made) {
    ATOLL_RETURN_IF_ERROR(train_.append(made.train));
    ATOLL_RETURN_IF_ERROR(validation_.append(made.validation));
    PrepareJournal& journal = pass_.journal;
    journal.next = {place.file, place.block + 1};
    journal.done_bytes += made.text_bytes;
    add(made, journal.statistics);
    if (pass_.progress) {
      pass_.progress({PrepareStage::kWriting, journal.done_bytes, journal.text_bytes, begun_bytes_,
                      journal.statistics.train.tokens + journal.statistics.validation.tokens});
    }
    if (Clock::now() - saved_ < pass_.options.checkpoint_every) return ok_status();
    ATOLL_ASSIGN_OR_RETURN(journal.train, train_.flush());
    ATOLL_ASSIGN_OR_RETURN(journal.validation, validation_.flush());
    ATOLL_RETURN_IF_ERROR(journal.save(pass_.directory));
    saved_ = Clock::now();
    return ok_status();
  }

  void add(const TokenBlock& made, DataStatistics& to) const {
    add_split(made.statistics.train, to.train);
    add_split(made.statistics.validation, to.validation);
    to.duplicates += made.statistics.duplicates;
    to.duplicate_bytes += made.statistics.duplicate_bytes;
    for (std::size_t i = 0; i < kLengthBins; ++i) to.lengths[i] += made.statistics.lengths[i];
    SourceStatistics& source = to.sources[std::min(pass_.files[pass_.journal.next.file].source, to.sources.size() - 1)];
    source.documents += made.source.documents;
    source.text_bytes += made.source.text_bytes;
    source.tokens += made.source.tokens;
    source.duplicates += made.source.duplicates;
  }

  const PreparePass& pass_;
  const DocumentPlan& plan_;
  const BlockTable table_;
  const ShardFormat format_;
  const std::vector<std::uint32_t> token_lengths_;
  ShardWriter train_, validation_;
  const std::uint64_t begun_bytes_;  // of text, by an earlier call
  Clock::time_point saved_ = Clock::now();
};

}  // namespace

Status write_all_tokens(const PreparePass& pass, const DocumentPlan& plan) {
  ATOLL_ASSIGN_OR_RETURN(const MappedFile blocks, MappedFile::open(pass.directory / kBlocksFile));
  return WritingPass(pass, plan, blocks.bytes()).run();
}

}  // namespace atl
