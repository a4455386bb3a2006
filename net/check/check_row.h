// One line of the node check: what was looked at, the verdict, the figure, and what to do about it. Plain values; any
// thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "net/base/result.h"

namespace atl {

enum class Verdict { kPass, kWarn, kFail, kSkip };

std::string_view to_string(Verdict verdict);  // "pass", "warn", "fail", "skip"
std::optional<Verdict> parse_verdict(std::string_view name);

struct CheckRow {
  std::string id = {};  // "disk.free"; frozen: scripts and manifests name rows by it
  Verdict verdict = Verdict::kSkip;
  std::optional<double> value = {};
  std::string unit = {};  // of the value: "B", "B/s", "FLOP/s", "s", "fraction", "C", "count"
  std::string text = {};  // for people; of a skipped row: why
  std::string fix = {};   // what can be copied or done; of a warning or failure never empty
  double seconds = 0;     // that it took

  nlohmann::json to_json() const;
};

// The hub did not answer: who talks to it next says whether name, port or TLS is to blame.
bool is_silent_hub(const CheckRow& row);

Result<CheckRow> check_row_from_json(const nlohmann::json& json);

// A finished check, as `atoll check --json` prints it and <home>/check.json keeps it.
struct CheckReport {
  static constexpr int kVersion = 1;
  static constexpr std::size_t kMaxRows = 64;

  std::string software = {};  // "atoll 0.1.0"
  std::string run_id = {};    // empty: of no run
  double time = 0;            // seconds since 1970, when it ended
  bool full = false;
  std::vector<CheckRow> rows = {};

  std::size_t count(Verdict verdict) const;
  const CheckRow* find(std::string_view id) const;

  nlohmann::json to_json() const;
  static Result<CheckReport> from_json(std::string_view text);
};

}  // namespace atl
