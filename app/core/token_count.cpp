#include "app/core/token_count.h"

#include <algorithm>

namespace atl {

void TokenCount::take(std::int64_t trainer, double step, std::uint64_t tokens) {
  if (trainer != trainer_ || tokens < tokens_) {
    // As the history counts (app/agent/history/history_feed.cpp): what the one before had trained stays trained.
    if (earlier_) *earlier_ += static_cast<double>(tokens_);
    seen_.clear();
    trainer_ = trainer;
  }
  tokens_ = tokens;
  if (earlier_) return;
  if (seen_.empty() || seen_.back().step < step) seen_.push_back({step, tokens});
  if (seen_.size() > kRemembered) seen_.pop_front();
}

void TokenCount::learn(double step, double total) {
  if (earlier_) return;
  const auto same = std::ranges::lower_bound(seen_, step, {}, &Seen::step);
  if (same == seen_.end() || same->step != step || total < static_cast<double>(same->tokens)) return;
  earlier_ = total - static_cast<double>(same->tokens);
  seen_.clear();
}

std::optional<double> TokenCount::total() const {
  if (!earlier_) return std::nullopt;
  return *earlier_ + static_cast<double>(tokens_);
}

std::optional<double> TokenCount::known_since() const {
  return seen_.empty() ? std::nullopt : std::optional(seen_.front().step);
}

}  // namespace atl
