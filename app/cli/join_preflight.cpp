#include "app/cli/join_preflight.h"

#include <fmt/format.h>

#include <algorithm>

#include "app/cli/check_this_node.h"
#include "app/cli/console_input.h"
#include "app/cli/text.h"

namespace atl {

Status JoinPreflight::run(const JoinRequest& join) {
  const CheckRequest request{.home = home_, .invite = join.invite, .device = device_of(join)};
  const bool again = began_;
  began_ = true;
  bool news = false;
  const auto on_row = [&](const CheckRow& row) {
    if ((row.verdict != Verdict::kWarn && row.verdict != Verdict::kFail) || is_silent_hub(row)) return;
    const bool is_new = shown_.insert(row.id).second || row.verdict == Verdict::kFail;
    if (is_new) print_row(row, context_.console);
    news = news || is_new;
  };
  ATOLL_ASSIGN_OR_RETURN(const CheckReport report, check_this_node(request, context_.interrupt, on_row));
  const auto fails =
      report.count(Verdict::kFail) - static_cast<std::size_t>(std::ranges::count_if(report.rows, is_silent_hub));
  context_.console.out << fmt::format("checked this machine{}: {} pass, {} warn, {} fail", again ? " for the run" : "",
                                      report.count(Verdict::kPass), report.count(Verdict::kWarn), fails)
                       << std::endl;
  const bool comes_back = has_trained_in_run_of(join, home_.island);
  if (fails > 0 && comes_back) {
    context_.console.out << "it has trained in this run and goes on all the same, as well as it can; see to it"
                         << std::endl;
    return ok_status();
  }
  if (fails > 0) {
    failed_ = true;
    return Error{ErrorCode::kPermissionDenied,
                 fmt::format("this machine fails {} of the node check; do what 'fix' says above, then join again",
                             format_number_of(fails, "row"))};
  }
  if (!news || !ask_ || comes_back) return ok_status();
  std::ostream* screen = context_.console.screen();
  (screen != nullptr ? *screen : context_.console.out) << "Go on? [y/N] " << std::flush;
  ATOLL_ASSIGN_OR_RETURN(const bool yes, said_yes(context_.interrupt));
  if (yes) return ok_status();
  return Error{ErrorCode::kAborted, "not joined, as you said"};
}

}  // namespace atl
