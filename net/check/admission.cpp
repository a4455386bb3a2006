#include "net/check/admission.h"

#include <fmt/format.h>

#include <algorithm>

namespace atl {

std::optional<std::vector<CheckedRow>> checked_rows(const CheckReport& report, std::string_view run_id) {
  if (report.run_id != run_id) return std::nullopt;
  std::vector<CheckedRow> rows;
  for (const CheckRow& row : report.rows) {
    if (rows.size() == kMaxCheckedRows) break;
    rows.push_back({row.id, std::string(to_string(row.verdict))});
  }
  return rows;
}

Status admit_checked(const CheckPolicy& policy, const std::optional<std::vector<CheckedRow>>& checked) {
  for (const std::string& row : policy.required) {
    std::string verdict = "it was not checked";
    if (checked) {
      const auto found = std::ranges::find(*checked, row, &CheckedRow::row);
      const auto told = found == checked->end() ? std::nullopt : parse_verdict(found->verdict);
      if (told == Verdict::kPass || told == Verdict::kWarn) continue;
      if (told == Verdict::kFail) verdict = "it failed";
    }
    return Error{
        ErrorCode::kPermissionDenied,
        fmt::format("this run requires {} of every island, and {}; see 'atoll check', then join again", row, verdict)};
  }
  return ok_status();
}

}  // namespace atl
