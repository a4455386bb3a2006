#include "app/cli/contribution_text.h"

#include <fmt/format.h>

#include "app/cli/text.h"

namespace atl {

std::string contribution_text(const Contribution& given) {
  if (given.tokens == 0 && given.rounds_accepted == 0) return "nothing yet";
  return fmt::format("{} trained, {} accepted, {} sent, {} of training", format_number_of(given.tokens, "token"),
                     format_number_of(given.rounds_accepted, "round"),
                     format_bytes(static_cast<double>(given.bytes_sent)), format_duration(given.seconds));
}

}  // namespace atl
