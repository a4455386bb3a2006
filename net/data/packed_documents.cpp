#include "net/data/packed_documents.h"

namespace atl {

void find_documents(std::span<const std::int32_t> tokens, std::int32_t end_of_text, std::span<std::int32_t> starts,
                    std::span<std::uint8_t> counts) {
  std::int32_t start = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (i > 0 && tokens[i - 1] == end_of_text) start = static_cast<std::int32_t>(i);
    if (start == static_cast<std::int32_t>(i)) counts[i] = 0;
    if (i < starts.size()) starts[i] = start;
  }
}

}  // namespace atl
