#include "net/check/report_file.h"

#include "net/base/file.h"
#include "net/wire/json_archive.h"

namespace atl {

std::filesystem::path check_file(const std::filesystem::path& home) { return home / "check.json"; }

Status save_check(const std::filesystem::path& home, const CheckReport& report) {
  return write_file_atomically(check_file(home), dump_json(report.to_json()) + "\n", FileMode::kPrivate);
}

Result<CheckReport> load_check(const std::filesystem::path& home) {
  ATOLL_ASSIGN_OR_RETURN(const std::string text, read_file(check_file(home), 256 * 1024));
  auto report = CheckReport::from_json(text);
  if (!report.ok()) return report.error().with_context(check_file(home).string());
  return report;
}

}  // namespace atl
