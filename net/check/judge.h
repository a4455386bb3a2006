// What the node check makes of measured facts: one rule a row, each a pure function. The list is the one that command
// line, join and admission share. Any thread.
#pragma once

#include <span>
#include <string_view>

#include "net/check/check_row.h"
#include "net/check/facts.h"
#include "net/check/thresholds.h"

namespace atl {

// What must have been measured before a row can be judged.
enum class FactGroup { kHost, kDisk, kGpu, kNet, kGpuMeasured };

struct RowRule {
  std::string_view id;
  FactGroup group;
  bool quick;  // part of the quick check
  // All but the id, which judge_row fills in.
  CheckRow (*judge)(const NodeFacts& facts, const CheckPolicy& policy);
};

// In the order in which they are shown.
std::span<const RowRule> check_rules();
const RowRule* find_rule(std::string_view id);  // null: there is no such row

// The row. One that the policy requires and that was skipped fails.
CheckRow judge_row(const RowRule& rule, const NodeFacts& facts, const CheckPolicy& policy);

}  // namespace atl
