#include "app/cli/check_this_node.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/agent/agent_config.h"
#include "app/cli/own_programs.h"
#include "app/cli/text.h"
#include "net/check/node_probes.h"
#include "net/check/report_file.h"
#include "net/control/control_client.h"
#include "net/enrol/client.h"

namespace atl {
namespace {

constexpr std::chrono::seconds kAgentAnswerTime{2};
constexpr std::chrono::seconds kHubAnswerTime{5};
constexpr std::size_t kIdColumns = 14;

std::string_view label_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::kPass: return "PASS";
    case Verdict::kWarn: return "WARN";
    case Verdict::kFail: return "FAIL";
    case Verdict::kSkip: return "skip";
  }
  return "";
}

Style style_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::kPass: return Style::kGood;
    case Verdict::kWarn: return Style::kWarning;
    case Verdict::kFail: return Style::kBad;
    case Verdict::kSkip: return Style::kDim;
  }
  return Style::kPlain;
}

bool trainer_runs(const IslandHome& home) {
  return ControlClient::connect(home.control_socket(), Deadline::after(kAgentAnswerTime)).ok();
}

// Whose invite is for another run than the one that was joined has not joined that one.
Result<JoinFile> joined_run(const CheckRequest& request) {
  ATOLL_ASSIGN_OR_RETURN(JoinFile join, load_join_file(request.home.island.join_file()));
  if (!request.invite || request.invite->run_id == join.run_id) return join;
  return Error{ErrorCode::kNotJoined, "the invite is for another run"};
}

// Who has joined measures as a member; who only holds an invite knocks at the hub.
void set_network(const CheckRequest& request, const Result<JoinFile>& join, NodeProbeOptions& options) {
  options.network.full = request.full;
  if (!join.ok()) {
    if (request.invite) options.network.hub = request.invite->hub;
    if (!request.invite) options.no_network = "no run was joined from here, so there is no hub to ask";
    return;
  }
  auto identity = load_identity(request.home.island.identity());
  if (!identity.ok()) {
    options.no_network = identity.error().message;
    return;
  }
  options.network.identity = std::move(*identity);
  options.network.hub = join->hub_addresses;
  options.network.bind = join->bind;
  options.shape.local_ranks = join->local_ranks;
  options.shape.micro_batch = join->micro_batch;
  options.network.trainer_listens = trainer_runs(request.home.island);
  if (options.network.trainer_listens) options.gpus_in_use = "the trainer uses the GPUs; end it first";
}

// As the hub of an invite tells it, for an island whose owner chose nothing. Empty: it does not say, or does not
// answer.
std::optional<RunNeeds> needs_of_invite(const Invite& invite, const AbortSignal& interrupt) {
  const auto hub = describe_hub(invite, Deadline::after(kHubAnswerTime), &interrupt);
  if (!hub.ok() || hub->run.needs.empty()) return std::nullopt;
  auto needs = run_needs_from_json(hub->run.needs);
  return needs.ok() ? std::optional(std::move(*needs)) : std::nullopt;
}

NodeProbeOptions options_for(const CheckRequest& request, const Result<JoinFile>& join) {
  NodeProbeOptions options;
  options.home = request.home.island.directory;
  options.full = request.full;
  const auto program = locate_gpu_probe();
  if (program.ok()) {
    options.gpu.program = *program;
  } else {
    options.gpu_program_missing = program.error().message;
  }
  set_network(request, join, options);
  return options;
}

// On what the island computes, or would: of no GPU, on its processor.
Result<DeviceChoice> device_of(const CheckRequest& request, const Result<JoinFile>& join, const Config& config) {
  if (request.device) return *request.device;
  ATOLL_ASSIGN_OR_RETURN(const DeviceChoice configured, parse_device_choice(config.text("island.device")));
  const DeviceChoice device = join.ok() ? join->device : configured;
  const bool no_gpus = (join.ok() ? join->gpus : config.text("island.gpus")) == "none";
  return no_gpus && device == DeviceChoice::kAuto ? DeviceChoice::kProcessor : device;
}

}  // namespace

Result<CheckReport> check_this_node(const CheckRequest& request, const AbortSignal& interrupt,
                                    const std::function<void(const CheckRow&)>& on_row) {
  const Result<JoinFile> join = joined_run(request);
  ATOLL_ASSIGN_OR_RETURN(const Config config, Config::load(config_sources(request.home)));
  NodeProbeOptions options = options_for(request, join);
  ATOLL_ASSIGN_OR_RETURN(options.device, device_of(request, join, config));
  if (options.device == DeviceChoice::kProcessor) options.gpus_in_use = "they are left idle (island.device)";
  options.shape.keeps_work = config_seconds(config.text("checkpoints.work_every")) > 0;
  options.shape.data_cache_bytes = config_bytes(config.text("island.data_cache"));
  if (!join.ok() && request.invite) options.run = needs_of_invite(*request.invite, interrupt);
  NodeProbes probes(std::move(options), interrupt);
  CheckPlan plan;
  plan.full = request.full;
  ATOLL_ASSIGN_OR_RETURN(CheckReport report, check_node(probes, plan, interrupt, on_row));
  if (!join.ok()) report.run_id.clear();
  // Without the hub it says nothing of the run: what is there stays.
  if (!report.run_id.empty()) ATOLL_RETURN_IF_ERROR(save_check(request.home.island.directory, report));
  return report;
}

CheckTask::Check node_check_of(const AgentHome& home) {
  return [home](const CheckTask::Wanted& wanted, const AbortSignal& abort, const CheckTask::OnRow& on_row) {
    return check_this_node({.home = home, .full = wanted.full, .invite = wanted.invite, .device = wanted.device}, abort,
                           on_row);
  };
}

void print_row(const CheckRow& row, Console& console) {
  const auto columns = static_cast<std::size_t>(std::max(console.columns, 20));
  const std::string text = printable(row.text), fix = printable(row.fix);
  std::string line =
      fmt::format("{} {} {}", console.styled(label_of(row.verdict), style_of(row.verdict)), fit(row.id, kIdColumns),
                  row.verdict == Verdict::kSkip ? console.styled(text, Style::kDim) : text);
  if (!fix.empty()) {
    const bool one_line = !console.out_is_terminal || display_width(line) + display_width(fix) + 8 <= columns;
    line += one_line ? fmt::format("   fix: {}", fix) : fmt::format("\n     fix: {}", fix);
  }
  console.out << line << std::endl;
}

void print_summary(const CheckReport& report, int exit_code, Console& console) {
  std::string text;
  for (const Verdict verdict : {Verdict::kFail, Verdict::kWarn}) {
    const std::size_t count = report.count(verdict);
    if (count > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, to_string(verdict));
  }
  if (text.empty()) text = "nothing to complain about";
  if (exit_code != 0) text += fmt::format("  (exit {})", exit_code);
  console.out << text << std::endl;
}

}  // namespace atl
