#include "net/mesh/lease_book.h"

#include <algorithm>

namespace atl {
namespace {

constexpr std::uint64_t kPutOffLeases = 8;  // new ones, until it is tried again; then twice as many
constexpr int kMostPutOffDoublings = 10;

}  // namespace

LeaseBook::LeaseBook(std::uint64_t cursor, const std::vector<LeaseRange>& returned) : cursor_(cursor) {
  for (const LeaseRange& range : returned) give_back(range);
}

LeaseRange LeaseBook::take(std::uint64_t sequences) {
  const auto same_size = [sequences](const LeaseRange& range) { return range.sequences == sequences; };
  const auto found = std::ranges::find_if(returned_, same_size);
  if (found != returned_.end()) return returned_.extract(found).value();
  const auto is_due = [&](const auto& entry) { return same_size(entry.first) && entry.second <= cursor_; };
  const auto due = std::ranges::find_if(put_off_, is_due);
  if (due != put_off_.end()) return put_off_.extract(due).key();
  const LeaseRange range{cursor_, sequences};
  cursor_ += sequences;
  return range;
}

bool LeaseBook::take(LeaseRange range) { return returned_.erase(range) > 0; }

void LeaseBook::give_back(LeaseRange range) {
  if (range.sequences > 0) returned_.insert(range);
}

void LeaseBook::put_off(LeaseRange range) {
  if (range.sequences == 0) return;
  const int times = std::min(times_put_off_[range]++, kMostPutOffDoublings);
  put_off_[range] = cursor_ + range.sequences * (kPutOffLeases << times);
}

void LeaseBook::forget_before(std::uint64_t position) {
  cursor_ = std::max(cursor_, position);
  std::erase_if(returned_, [position](const LeaseRange& range) { return range.first < position; });
  std::erase_if(put_off_, [position](const auto& entry) { return entry.first.first < position; });
}

}  // namespace atl
