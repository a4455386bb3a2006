#include "net/mesh/lease_book.h"

#include <algorithm>

namespace atl {

LeaseBook::LeaseBook(std::uint64_t cursor, const std::vector<LeaseRange>& returned) : cursor_(cursor) {
  for (const LeaseRange& range : returned) give_back(range);
}

LeaseRange LeaseBook::take(std::uint64_t sequences) {
  const auto same_size = [sequences](const LeaseRange& range) { return range.sequences == sequences; };
  const auto found = std::ranges::find_if(returned_, same_size);
  if (found != returned_.end()) return returned_.extract(found).value();
  const LeaseRange range{cursor_, sequences};
  cursor_ += sequences;
  return range;
}

bool LeaseBook::take(LeaseRange range) { return returned_.erase(range) > 0; }

void LeaseBook::give_back(LeaseRange range) {
  if (range.sequences > 0) returned_.insert(range);
}

void LeaseBook::forget_before(std::uint64_t position) {
  cursor_ = std::max(cursor_, position);
  std::erase_if(returned_, [position](const LeaseRange& range) { return range.first < position; });
}

}  // namespace atl
