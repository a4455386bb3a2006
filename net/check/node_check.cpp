#include "net/check/node_check.h"

#include <algorithm>

#include "net/base/deadline.h"
#include "net/base/unix_time.h"

namespace atl {
namespace {

constexpr FactGroup kOrder[] = {FactGroup::kHost, FactGroup::kDisk, FactGroup::kGpu, FactGroup::kNet,
                                FactGroup::kGpuMeasured};

void gather(FactGroup group, CheckProbes& probes, NodeFacts& facts) {
  switch (group) {
    case FactGroup::kHost: return probes.look_at_host(facts.host);
    case FactGroup::kDisk: return probes.measure_disk(facts.disk);
    case FactGroup::kGpu: return probes.list_gpus(facts.gpu);
    case FactGroup::kNet: return probes.measure_network(facts.net);
    case FactGroup::kGpuMeasured: return probes.measure_gpus(facts.gpu);
  }
}

}  // namespace

Result<CheckReport> check_node(CheckProbes& probes, const CheckPlan& plan, const AbortSignal& abort,
                               const std::function<void(const CheckRow&)>& on_row) {
  NodeFacts facts;
  CheckPolicy policy = plan.policy;
  probes.learn_run(facts, policy);
  CheckReport report{.software = "atoll " ATOLL_VERSION, .full = plan.full};
  if (facts.run) report.run_id = facts.run->run_id;
  const auto wanted = [&](const RowRule& rule) { return rule.quick || plan.full || policy.requires_row(rule.id); };
  for (const FactGroup group : kOrder) {
    if (abort.raised()) return Error{ErrorCode::kAborted, "the check was cut short: " + abort.reason()};
    std::vector<const RowRule*> rules;
    for (const RowRule& rule : check_rules()) {
      if (rule.group == group && wanted(rule)) rules.push_back(&rule);
    }
    // Rows on cards speak of the host too, and measured ones of the cards that there are.
    const bool basis = group == FactGroup::kHost || group == FactGroup::kGpu;
    if (rules.empty() && !basis) continue;
    const auto begin = Clock::now();
    gather(group, probes, facts);
    if (abort.raised()) return Error{ErrorCode::kAborted, "the check was cut short: " + abort.reason()};
    const double each =
        Seconds(Clock::now() - begin).count() / static_cast<double>(std::max<std::size_t>(1, rules.size()));
    for (const RowRule* rule : rules) {
      CheckRow row = judge_row(*rule, facts, policy);
      row.seconds = each;  // rows of a group are measured together
      on_row(row);
      report.rows.push_back(std::move(row));
    }
  }
  report.time = unix_time_now();
  return report;
}

}  // namespace atl
