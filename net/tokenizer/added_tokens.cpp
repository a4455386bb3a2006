#include "net/tokenizer/added_tokens.h"

#include <algorithm>
#include <functional>

namespace atl {

AddedTokens::AddedTokens(const std::vector<AddedToken>& tokens, const TokenBytes& bytes)
    : all_(bytes, tokens.size()), ordinary_(bytes, tokens.size()) {
  for (const AddedToken& token : tokens) {
    add(all_, token);
    if (!token.special) add(ordinary_, token);
  }
  finish(all_);
  finish(ordinary_);
}

void AddedTokens::add(Kind& kind, const AddedToken& token) {
  kind.table.insert(token.id);
  kind.begins[static_cast<unsigned char>(token.text.front())] = true;
  kind.lengths.push_back(token.text.size());
}

void AddedTokens::finish(Kind& kind) {
  std::sort(kind.lengths.begin(), kind.lengths.end(), std::greater<>());
  kind.lengths.erase(std::unique(kind.lengths.begin(), kind.lengths.end()), kind.lengths.end());
  if (std::count(kind.begins.begin(), kind.begins.end(), true) == 1) {
    kind.only_begin = static_cast<char>(std::find(kind.begins.begin(), kind.begins.end(), true) - kind.begins.begin());
  }
}

std::optional<AddedTokens::Found> AddedTokens::find(std::string_view text, std::size_t from,
                                                    SpecialText special) const {
  const Kind& kind = special == SpecialText::kIsToken ? all_ : ordinary_;
  if (kind.lengths.empty()) return std::nullopt;
  for (std::size_t at = from; at < text.size(); ++at) {
    if (kind.only_begin) {
      at = text.find(*kind.only_begin, at);
      if (at == std::string_view::npos) break;
    } else if (!kind.begins[static_cast<unsigned char>(text[at])]) {
      continue;
    }
    for (const std::size_t length : kind.lengths) {
      if (length > text.size() - at) continue;
      const TokenId id = kind.table.find(text.substr(at, length));
      if (id != PieceTable::kNoToken) return Found{at, length, id};
    }
  }
  return std::nullopt;
}

}  // namespace atl
