#include "net/tokenizer/sentencepiece_tokenizer.h"

#include <fmt/format.h>

#if ATOLL_HAVE_SENTENCEPIECE
#include <sentencepiece_processor.h>

#include <charconv>

#include "net/base/printable.h"
#include "net/tokenizer/bpe_tables.h"
#endif

namespace atl {

// A protocol buffer whose first field is the first piece, of more than a byte.
bool looks_like_sentencepiece(std::string_view content) { return content.size() > 2 && content.starts_with('\n'); }

#if ATOLL_HAVE_SENTENCEPIECE
namespace {

constexpr std::string_view kSpace = "\xE2\x96\x81";  // U+2581, which stands for a space in pieces

// "<0x0A>"; the library alone makes characters of several.
std::string byte_of(std::string_view piece) {
  unsigned byte = 0;
  const std::string_view digits = piece.substr(std::min<std::size_t>(piece.size(), 3), 2);
  std::from_chars(digits.data(), digits.data() + digits.size(), byte, 16);
  return std::string(1, static_cast<char>(byte));
}

class SentencePieceTokenizer final : public Tokenizer {
 public:
  SentencePieceTokenizer(TokenizerFacts facts, std::unique_ptr<sentencepiece::SentencePieceProcessor> processor)
      : Tokenizer(std::move(facts)), processor_(std::move(processor)) {}

  std::unique_ptr<TokenizerScratch> make_scratch() const override { return std::make_unique<TokenizerScratch>(); }

  Status encode(std::string_view text, SpecialText special, TokenizerScratch&,
                std::vector<TokenId>& ids) const override {
    while (!text.empty()) {
      const auto [at, found] = special == SpecialText::kIsToken ? next_special(text) : Found{};
      append_pieces(text.substr(0, at), ids);
      if (found == nullptr) break;
      ids.push_back(found->id);
      text.remove_prefix(at + found->name.size());
    }
    return ok_status();
  }

  Status decode(std::span<const TokenId> ids, std::string& bytes) const override {
    for (const TokenId id : ids) {
      if (id >= facts().vocab_size) return no_such_token(id);
    }
    std::vector<int> run;
    const auto end_run = [&] {
      bytes += processor_->DecodeIds(run);
      run.clear();
    };
    for (const TokenId id : ids) {
      if (!is_special(id)) {
        run.push_back(static_cast<int>(id));
        continue;
      }
      end_run();
      bytes += processor_->IdToPiece(static_cast<int>(id));
    }
    end_run();
    return ok_status();
  }

  std::string within_text(TokenId id) const override {
    const int piece = static_cast<int>(id);
    if (id >= facts().vocab_size || is_special(id)) return {};
    if (processor_->IsUnknown(piece)) return processor_->DecodeIds({piece});
    std::string text = processor_->IdToPiece(piece);
    if (processor_->IsByte(piece)) return byte_of(text);
    for (std::size_t at = text.find(kSpace); at != std::string::npos; at = text.find(kSpace, at)) {
      text.replace(at, kSpace.size(), " ");
    }
    return text;
  }

 private:
  struct Found {
    std::size_t at = std::string_view::npos;
    const SpecialToken* token = nullptr;
  };
  Found next_special(std::string_view text) const {
    Found first;
    for (const SpecialToken& token : facts().special_tokens) {
      if (const std::size_t at = text.find(token.name); at < first.at) first = {at, &token};
    }
    return first;
  }
  void append_pieces(std::string_view text, std::vector<TokenId>& ids) const {
    if (text.empty()) return;
    for (const int id : processor_->EncodeAsIds(text)) ids.push_back(static_cast<TokenId>(id));
  }

  const std::unique_ptr<const sentencepiece::SentencePieceProcessor> processor_;
};

}  // namespace

Result<std::unique_ptr<Tokenizer>> read_sentencepiece(std::string_view content, TokenizerFacts facts) {
  auto processor = std::make_unique<sentencepiece::SentencePieceProcessor>();
  if (const auto loaded = processor->LoadFromSerializedProto(content); !loaded.ok()) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("it looks like a model of SentencePiece and is damaged ({}); get the file again",
                             printable(loaded.ToString()))};
  }
  const int pieces = processor->GetPieceSize();
  if (pieces <= 0 || static_cast<std::uint32_t>(pieces) > kMaxVocabulary) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("it has {} pieces, not from 1 to {}", pieces, kMaxVocabulary)};
  }
  facts.kind = kSentencePieceKind;
  facts.vocab_size = static_cast<std::uint32_t>(pieces);
  for (int id = 0; id < pieces; ++id) {
    if (processor->IsControl(id)) facts.special_tokens.push_back({processor->IdToPiece(id), static_cast<TokenId>(id)});
  }
  if (processor->bos_id() >= 0) facts.begin_of_text = static_cast<TokenId>(processor->bos_id());
  if (processor->eos_id() >= 0) facts.end_of_text = static_cast<TokenId>(processor->eos_id());
  facts.begins_with_token = facts.begin_of_text.has_value();
  return std::unique_ptr<Tokenizer>(std::make_unique<SentencePieceTokenizer>(std::move(facts), std::move(processor)));
}

#else

Result<std::unique_ptr<Tokenizer>> read_sentencepiece(std::string_view, TokenizerFacts) {
  return Error{ErrorCode::kInvalidArgument,
               "it looks like a model of SentencePiece, which this build cannot read: install libsentencepiece-dev and "
               "build again, or take the model's tokenizer.json"};
}

#endif

}  // namespace atl
