#include <fmt/format.h>
#include <malloc.h>
#include <spdlog/spdlog.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "net/base/signal_watch.h"
#include "net/control/control_server.h"
#include "net/control/home.h"
#include "trainer/island/island.h"
#include "trainer/program/program.h"

namespace atl {
namespace {

// The trainer's methods on the control socket.
class TrainerControl final : public ControlService {
 public:
  explicit TrainerControl(Island& island) : island_(island) {}

  Result<nlohmann::json> call(std::string_view method, const nlohmann::json& params) override {
    if (method == "state.get") return island_.state().to_json();
    if (method == "stop" || method == "leave") {
      island_.request_stop(method == "stop" ? "asked to stop" : "asked to leave the run");
      return nlohmann::json{{"stopping", true}};
    }
    if (method == "model.export") return export_to(params);
    return Error{ErrorCode::kNotFound, fmt::format("no method '{}' here", method)};
  }

 private:
  Result<nlohmann::json> export_to(const nlohmann::json& params) const {
    const auto directory = params.is_object() ? params.find("directory") : params.end();
    if (directory == params.end() || !directory->is_string()) {
      return Error{ErrorCode::kInvalidArgument, "model.export needs {\"directory\": \"/absolute/path\"}"};
    }
    const std::filesystem::path path = directory->get<std::string>();
    if (!path.is_absolute())
      return Error{ErrorCode::kInvalidArgument, "model.export: the directory must be an absolute path"};
    ATOLL_ASSIGN_OR_RETURN(const OuterStep outer_step, island_.export_model(path));
    return nlohmann::json{{"directory", path.string()}, {"outer_step", outer_step.value}};
  }

  Island& island_;
};

// The threads of an all-reduce and of a peer that fetches the state live for seconds, but glibc keeps what they freed
// in up to 8 heaps a core, each as large as the most that a thread ever held.
void share_heaps() {
#ifdef M_ARENA_MAX
  constexpr int kHeaps = 4;
  (void)::mallopt(M_ARENA_MAX, kHeaps);
#endif
}

}  // namespace

Status run_island(const RunCommand& command) {
  share_heaps();  // before there are threads
  SignalWatch::block_signals();
  const IslandHome home{command.home};
  ATOLL_ASSIGN_OR_RETURN(const JoinFile join, load_join_file(home.join_file()));
  IslandOptions options;
  ATOLL_ASSIGN_OR_RETURN(options.identity, load_identity(home.identity()));
  options.hub_addresses = join.hub_addresses;
  options.display_name = join.display_name;
  options.bind = join.bind;
  options.advertised_host = join.advertised_host;
  options.local_ranks = command.local_ranks.value_or(join.local_ranks);
  options.threads = command.threads.value_or(join.threads);
  if (options.threads <= 0) options.threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  options.data_directory = home.data();
  options.checkpoint_directory = home.checkpoint();

  // The server is there before the island that publishes to it, and outlives it.
  std::unique_ptr<ControlServer> control;
  options.on_event = [&control](const char* event, const IslandState& state) {
    if (control) control->publish(event, state.to_json());
  };
  options.on_news = [&control](const char* event, const nlohmann::json& data) {
    if (control) control->publish(event, data);
  };
  ATOLL_ASSIGN_OR_RETURN(const auto island, Island::create(std::move(options)));
  TrainerControl service(*island);
  ATOLL_ASSIGN_OR_RETURN(control, ControlServer::start(home.control_socket(), "atoll-trainer", service));
  const SignalWatch signals([&island](int signal) { island->request_stop(fmt::format("signal {}", signal)); });
  spdlog::info("trainer started island={} run={}", island->state().island, join.run_id);
  Status status = island->run();
  spdlog::info("trainer ended outer_step={}", island->state().outer_step);
  return status;
}

}  // namespace atl
