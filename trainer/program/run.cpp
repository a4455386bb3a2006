#include <fmt/format.h>
#include <malloc.h>
#include <spdlog/spdlog.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <thread>

#include "net/base/exit_code.h"
#include "net/base/log.h"
#include "net/base/own_output.h"
#include "net/base/signal_watch.h"
#include "net/check/admission.h"
#include "net/check/report_file.h"
#include "net/control/control_server.h"
#include "net/control/home.h"
#include "net/control/methods.h"
#include "net/control/trainer_contract.h"
#include "net/enrol/certificate_keeper.h"
#include "trainer/island/island.h"
#include "trainer/program/agent_watch.h"
#include "trainer/program/program.h"
#include "trainer/program/trainer_environment.h"

namespace atl {
namespace {

// The trainer's methods on the control socket.
class TrainerControl final : public ControlService {
 public:
  // Both outlive it.
  TrainerControl(Island& island, AgentWatch& agent) : island_(island), agent_(agent) {}

  bool is_slow(std::string_view name) const override { return name == method::ModelExport::kName; }

  Result<nlohmann::json> call(std::string_view name, const nlohmann::json& params) override {
    if (name == method::StateGet::kName) return island_.state().to_json();
    if (name == method::AgentAlive::kName) {
      agent_.heard();
      ATOLL_ASSIGN_OR_RETURN(const auto alive, decode_message<method::AgentAlive>(params));
      if (alive.caps) island_.set_transfer_caps(*alive.caps);
      return island_.state().to_json();
    }
    if (name == method::Stop::kName || name == method::Leave::kName) {
      island_.request_stop(name == method::Stop::kName ? "asked to stop" : "asked to leave the run");
      return encode_message(method::Stopping{});
    }
    if (name == method::Pause::kName || name == method::Finish::kName) {
      name == method::Pause::kName ? island_.request_pause() : island_.request_finish();
      return nlohmann::json{{"ending", true}};
    }
    if (name == method::ModelExport::kName) return export_to(params);
    return Error{ErrorCode::kNotFound, fmt::format("no method '{}' here", name)};
  }

 private:
  Result<nlohmann::json> export_to(const nlohmann::json& json) const {
    ATOLL_ASSIGN_OR_RETURN(const auto params, decode_message<method::ModelExport>(json));
    const std::filesystem::path path = params.directory;
    if (!path.is_absolute())
      return Error{ErrorCode::kInvalidArgument, "model.export: the directory must be an absolute path"};
    ModelFilesOptions files;
    const auto dtype = parse_model_dtype(params.dtype);
    if (!dtype && !params.dtype.empty())
      return Error{ErrorCode::kInvalidArgument, "model.export: 'dtype' must be float32 or bfloat16"};
    files.dtype = dtype.value_or(files.dtype);
    if (params.max_shard_bytes > 0) files.max_shard_bytes = params.max_shard_bytes;
    ATOLL_ASSIGN_OR_RETURN(const OuterStep outer_step, island_.export_model(path, files));
    return encode_message(method::ModelExported{path.string(), outer_step.value});
  }

  Island& island_;
  AgentWatch& agent_;
};

// The threads of an all-reduce and of a peer that fetches the state live for seconds, but glibc keeps what they freed
// in up to 8 heaps a core, each as large as the most that a thread ever held; and once a chunk of the state was freed,
// it takes the next ones from these heaps too, unless the threshold from which memory is the kernel's own is fixed.
// What training frees and takes again in each step stays.
void bound_what_heaps_keep() {
#ifdef M_ARENA_MAX
  constexpr int kHeaps = 4;
  constexpr int kOwnMapping = 10 << 20;  // bytes: less than a chunk of the state
  constexpr int kKept = 16 << 20;        // bytes free at the end of a heap
  (void)::mallopt(M_ARENA_MAX, kHeaps);
  (void)::mallopt(M_MMAP_THRESHOLD, kOwnMapping);
  (void)::mallopt(M_TRIM_THRESHOLD, kKept);
#endif
}

std::optional<double> cap_in(const char* variable) {
  const double cap = std::strtod(environment(variable).c_str(), nullptr);
  return cap > 0 ? std::optional(cap) : std::nullopt;
}

// "12, 500"; what is no number is passed over.
std::set<OuterStep> steps_in(const std::string& text) {
  std::set<OuterStep> steps;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    char* end = nullptr;
    const unsigned long step = std::strtoul(word.c_str(), &end, 10);
    if (end != word.c_str() && step <= UINT32_MAX) steps.insert(OuterStep{static_cast<std::uint32_t>(step)});
  }
  return steps;
}

}  // namespace

Result<int> run_island(const RunCommand& command) {
  bound_what_heaps_keep();  // before there are threads
  SignalWatch::block_signals();
  const OwnOutput output(environment(kLogFileVariable),
                         std::strtoull(environment(kLogBytesVariable).c_str(), nullptr, 10));
  set_log_level(environment(kLogLevelVariable));
  const IslandHome home{command.home};
  ATOLL_ASSIGN_OR_RETURN(const JoinFile join, load_join_file(home.join_file()));
  IslandOptions options;
  ATOLL_ASSIGN_OR_RETURN(options.identity, load_identity(home.identity()));
  const CertificateKeeper keeper(options.identity, {home.identity(), join.hub_addresses});
  options.hub_addresses = join.hub_addresses;
  options.display_name = join.display_name;
  options.region = join.region;
  options.bind = join.bind;
  options.advertised_host = join.advertised_host;
  options.local_ranks = command.local_ranks.value_or(join.local_ranks);
  options.threads = command.threads.value_or(join.threads);
  options.micro_batch = command.micro_batch.value_or(join.micro_batch);
  options.device = join.device;
  options.precision = join.precision;
  if (options.threads <= 0) options.threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  options.transfer_caps = {cap_in(kUploadCapVariable), cap_in(kDownloadCapVariable)};
  options.data_directory = home.data();
  options.checked = [directory = home.directory, run_id = join.run_id]() -> std::optional<std::vector<CheckedRow>> {
    const auto report = load_check(directory);
    return report.ok() ? checked_rows(*report, run_id) : std::nullopt;
  };
  options.checkpoint_directory = home.checkpoint();
  options.keep_days = static_cast<std::uint32_t>(std::strtoul(environment(kKeepDaysVariable).c_str(), nullptr, 10));
  options.work_every = std::chrono::seconds(std::strtoul(environment(kWorkEveryVariable).c_str(), nullptr, 10));
  if (const std::string cache = environment(kDataCacheVariable); !cache.empty()) {
    options.data_cache_bytes = std::strtoull(cache.c_str(), nullptr, 10);
  }
  if (const std::string mirrors = environment(kDataMirrorsVariable); !mirrors.empty()) {
    ATOLL_ASSIGN_OR_RETURN(options.data_mirrors, parse_mirror_policy(mirrors));
  }
  options.credited = environment(kCreditVariable) == kCreditByName;
  options.keep_rounds = steps_in(environment(kKeepRoundsVariable));
  options.store = store_of_environment();

  // The server is there before the island that publishes to it, and outlives it.
  std::unique_ptr<ControlServer> control;
  options.on_event = [&control](const ControlEvent& event) {
    if (control) control->publish(name_of(event), data_of(event));
  };
  ATOLL_ASSIGN_OR_RETURN(const auto island, Island::create(std::move(options)));
  AgentWatch agent(agent_patience(), [&island] { island->request_stop("its agent is gone"); });
  TrainerControl service(*island, agent);
  ATOLL_ASSIGN_OR_RETURN(control, ControlServer::start(home.control_socket(), "atoll-trainer", service));
  const SignalWatch signals([&island](int signal) { island->request_stop(fmt::format("signal {}", signal)); });
  spdlog::info("trainer started island={} run={}", island->state().island, join.run_id);
  Status status = island->run();
  log_at_any_level(fmt::format("trainer ended outer_step={} {}", island->state().outer_step,
                               island->run_finished() ? "run_finished=true" : kRunGoesOnWords));
  if (!status.ok()) return status.error();
  if (island->paused()) return kTrainerPausedExit;
  return island->round_finished() ? kTrainerFinishedExit : int{kExitOk};
}

}  // namespace atl
