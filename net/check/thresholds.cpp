#include "net/check/thresholds.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "net/check/judge.h"
#include "net/wire/json_archive.h"

namespace atl {
namespace {

constexpr std::size_t kMaxPolicyBytes = 16 * 1024;

struct Named {
  std::string_view row;
  Limit CheckThresholds::*limit;
  bool more_is_better;
};

constexpr Named kNamed[] = {
    {"gpu.driver", &CheckThresholds::gpu_driver, true},
    {"gpu.bf16", &CheckThresholds::gpu_bf16, true},
    {"gpu.spread", &CheckThresholds::gpu_spread, true},
    {"gpu.hbm", &CheckThresholds::gpu_hbm, true},
    {"gpu.pcie", &CheckThresholds::gpu_pcie, true},
    {"gpu.nvlink", &CheckThresholds::gpu_nvlink, true},
    {"gpu.thermal", &CheckThresholds::gpu_thermal, false},
    {"cpu", &CheckThresholds::cpu_parameters, false},
    {"disk.free", &CheckThresholds::disk_free, true},
    {"disk.write", &CheckThresholds::disk_write, false},
    {"ram", &CheckThresholds::ram, true},
    {"host.shm", &CheckThresholds::shm, true},
    {"host.nofile", &CheckThresholds::nofile, true},
    {"clock", &CheckThresholds::clock, false},
    {"net.rtt", &CheckThresholds::net_rtt, false},
    {"net.loss", &CheckThresholds::net_loss, false},
    {"net.sync", &CheckThresholds::net_sync, false},
};

Error wrong_check(const std::string& what) {
  return Error{ErrorCode::kInvalidArgument, "the run's \"check\": " + what};
}

Status override_limit(const Named& named, const nlohmann::json& given, CheckThresholds& thresholds) {
  if (!given.is_object()) return wrong_check(fmt::format("thresholds of {} are no object", named.row));
  Limit& limit = thresholds.*named.limit;
  for (const auto& [name, value] : given.items()) {
    const bool known = name == "pass" || name == "warn";
    if (!known || !value.is_number() || !std::isfinite(value.get<double>()) || value.get<double>() < 0) {
      return wrong_check(
          fmt::format("thresholds of {} are \"pass\" and \"warn\", each a number of 0 or more", named.row));
    }
    (name == "pass" ? limit.pass : limit.warn) = value.get<double>();
  }
  const bool ordered = named.more_is_better ? limit.warn <= limit.pass : limit.warn >= limit.pass;
  if (ordered) return ok_status();
  return wrong_check(fmt::format("{} would warn at {} and pass only at {}: its warning is the stricter one", named.row,
                                 limit.warn, limit.pass));
}

Status read_thresholds(const nlohmann::json& given, CheckThresholds& thresholds) {
  if (!given.is_object()) return wrong_check("\"thresholds\" is no object");
  for (const auto& [row, limits] : given.items()) {
    const Named* found = nullptr;
    for (const Named& named : kNamed) {
      if (named.row == row) found = &named;
    }
    if (found == nullptr) {
      return wrong_check(fmt::format("no row '{}' has thresholds; these have: {}", printable(row, 64),
                                     fmt::join(threshold_names(), ", ")));
    }
    ATOLL_RETURN_IF_ERROR(override_limit(*found, limits, thresholds));
  }
  return ok_status();
}

Status read_required(const nlohmann::json& given, std::set<std::string>& required) {
  if (!given.is_array() || given.size() > CheckReport::kMaxRows) return wrong_check("\"require\" is no list of rows");
  for (const auto& row : given) {
    if (!row.is_string() || find_rule(row.get_ref<const std::string&>()) == nullptr) {
      return wrong_check(fmt::format("it requires {}, and there is no such row; 'atoll check' lists them",
                                     printable(dump_json(row), 64)));
    }
    required.insert(row.get<std::string>());
  }
  return ok_status();
}

}  // namespace

std::vector<std::string_view> threshold_names() {
  std::vector<std::string_view> names;
  for (const Named& named : kNamed) names.push_back(named.row);
  return names;
}

Result<CheckPolicy> parse_check_policy(std::string_view text) {
  CheckPolicy policy;
  if (text.empty()) return policy;
  const auto parsed = parse_bounded_json(text, kMaxPolicyBytes, 4);
  if (!parsed.ok()) return wrong_check(parsed.error().message);
  if (!parsed->is_object()) return wrong_check("it is no object");
  for (const auto& [name, value] : parsed->items()) {
    if (name == "require") {
      ATOLL_RETURN_IF_ERROR(read_required(value, policy.required));
    } else if (name == "thresholds") {
      ATOLL_RETURN_IF_ERROR(read_thresholds(value, policy.thresholds));
    } else {
      return wrong_check(fmt::format("'{}' is neither \"require\" nor \"thresholds\"", printable(name, 64)));
    }
  }
  return policy;
}

}  // namespace atl
