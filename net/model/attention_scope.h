// How far a token's attention reaches in a sequence in which documents lie end to end. Plain values; any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace atl {

enum class AttentionScope : std::uint8_t {
  kPacked,    // the sequence up to the token, whatever documents lie there
  kDocument,  // its document alone: positions begin anew with each, and nothing is predicted across its end
};

inline constexpr std::array<std::string_view, 2> kAttentionScopes = {"packed", "document"};
constexpr std::string_view attention_scope_name(AttentionScope scope) {
  return kAttentionScopes[static_cast<std::size_t>(scope)];
}
constexpr std::optional<AttentionScope> attention_scope_named(std::string_view name) {
  for (std::size_t i = 0; i < kAttentionScopes.size(); ++i) {
    if (kAttentionScopes[i] == name) return static_cast<AttentionScope>(i);
  }
  return std::nullopt;
}

}  // namespace atl
