#include "tests/wan/wan_run.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "net/hub/hub.h"
#include "net/model/layout.h"
#include "net/transport/socket.h"
#include "tests/process/run_parts.h"

namespace atl::wan {
namespace {

using test::require;

constexpr double kFastBitsPerSecond = 500e6;
constexpr std::uint16_t kHubPort = 47000;
constexpr std::chrono::seconds kStartTime{20};
constexpr std::chrono::milliseconds kPoll{10};

// Some 1.5 million values: 2.3 MB a round for each of four islands in int8.
std::string model_json() {
  return R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 257, "hidden_size": 256,
             "intermediate_size": 688, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
             "hidden_act": "silu", "max_position_embeddings": 256, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
             "tie_word_embeddings": true})";
}

RunConfig run_config(const WanRunOptions& options) {
  RunConfig run;
  run.name = "wan test";
  run.model_json = model_json();
  run.inner_steps = options.inner_steps;
  run.sequences_per_step = 2;
  run.sequence_length = 64;
  run.min_islands = static_cast<std::uint32_t>(options.islands);
  run.validate_every = 0;
  run.dead_after = options.dead_after;
  run.heartbeat = options.dead_after / 3;
  return run;
}

void pause() { ::poll(nullptr, 0, static_cast<int>(kPoll.count())); }

Holdings holdings_of(pid_t pid) {
  const std::filesystem::path process = fmt::format("/proc/{}", pid);
  Holdings held;
  std::error_code gone;
  for (auto fd = std::filesystem::directory_iterator(process / "fd", gone); fd != std::filesystem::directory_iterator();
       ++fd) {
    ++held.fds;
  }
  std::ifstream status(process / "status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("Threads:")) held.threads = std::stol(line.substr(8));
    if (line.starts_with("VmRSS:")) held.resident_kib = std::stol(line.substr(6));
    if (line.starts_with("RssAnon:")) held.anonymous_kib = std::stol(line.substr(8));
  }
  return held;
}

}  // namespace

WanRun::WanRun(const WanRunOptions& options) : bits_per_second_(options.bits_per_second) {
  box_ =
      require(WanBox::create({.hosts = options.islands + 1,
                              .path = {.bits_per_second = options.bits_per_second,
                                       .delay = std::chrono::duration_cast<std::chrono::microseconds>(options.delay)},
                              .congestion_control = options.congestion_control}));
  numel_ = canonical_layout(require(model_config_from_json(model_json()))).numel;
  test::make_dataset(directory() / "text.txt", directory() / "dataset");
  const RunConfig run = require(
      hub_init({.directory = directory() / "hub", .data = {{directory() / "dataset"}}, .run = run_config(options)}));
  const Address address{box_->address(0), kHubPort};
  hub_.emplace(launch(0, "atoll",
                      {"hub", "serve", "--home", (directory() / "hub").string(), "--listen", to_string(address)},
                      directory() / "hub.log"));
  const Deadline deadline = Deadline::after(kStartTime);
  do {
    if (deadline.expired()) qFatal("the hub did not start; see %s", (directory() / "hub.log").c_str());
    pause();
    auto client = ControlClient::connect(HubHome{directory() / "hub"}.control_socket(), deadline);
    if (client.ok()) client_ = std::move(*client);
  } while (!client_);
  const auto now = std::chrono::time_point_cast<std::chrono::seconds>(std::chrono::system_clock::now());
  for (int i = 0; i < options.islands; ++i) {
    const InsideHost inside(box_->host(host_of_island(i)));
    const InviteReport invite = require(create_invite(directory() / "hub", {.addresses = {address}}));
    islands_.push_back({test::make_island_home({.directory = directory() / "islands",
                                                .dataset = directory() / "dataset",
                                                .invite = require(decode_invite(invite.text, now)),
                                                .display_name = fmt::format("island {}", i),
                                                .bind = {"0.0.0.0", kIslandPort}},
                                               run),
                        std::nullopt});
  }
  for (int i = 0; i < options.islands; ++i) start(i);
}

WanRun::~WanRun() = default;

WanProcess WanRun::launch(int host, const std::string& program, const std::vector<std::string>& arguments,
                          const std::filesystem::path& log) const {
  // The shell only redirects: it becomes the program.
  std::vector<std::string> command{"sh", "-c",         "log=$1; shift; exec \"$@\" >>\"$log\" 2>&1",
                                   "sh", log.string(), std::string(ATOLL_BIN_DIR) + "/" + program};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return require(box_->run_in(host, command));
}

// ---- what the hub says
// -------------------------------------------------------------------------------------------------

HubState WanRun::state() {
  const auto json = require(client_->call("state.get", nlohmann::json::object(), Deadline::after(kStartTime)));
  return require(HubState::from_json(json));
}

bool WanRun::wait_until(const std::function<bool(const HubState&)>& condition, std::chrono::milliseconds limit) {
  const Deadline deadline = Deadline::after(limit);
  while (!condition(state())) {
    if (deadline.expired()) return false;
    pause();
  }
  return true;
}

std::optional<std::uint32_t> WanRun::wait_for_ring(std::chrono::milliseconds limit) {
  const std::uint32_t next = state().outer_step + 1;
  std::uint32_t round = 0;
  const auto turns = [&](const HubState& state) {
    round = state.outer_step;
    return round >= next && state.round_open && state.phase == HubPhase::kSyncing;
  };
  if (!wait_until(turns, limit)) return std::nullopt;
  return round;
}

std::optional<HubState::Round> WanRun::wait_for_commit(std::uint32_t round, std::chrono::milliseconds limit) {
  std::optional<HubState::Round> record;
  (void)wait_until(
      [&](const HubState& state) {
        const auto found = std::ranges::find(state.rounds, round, &HubState::Round::round);
        if (found == state.rounds.end() || !found->outer_hashes_equal) return false;
        record = *found;
        return true;
      },
      limit);
  return record;
}

bool WanRun::wait_for_all(std::chrono::milliseconds limit) {
  set_rates_of_broken(kFastBitsPerSecond);
  const std::uint32_t next = state().outer_step;
  const bool all_there = wait_until(
      [&](const HubState& state) {
        return std::ranges::any_of(state.rounds, [&](const HubState::Round& round) {
          return round.round >= next && static_cast<int>(round.members) == islands() &&
                 round.outer_hashes_equal == true;
        });
      },
      limit);
  set_rates_of_broken(bits_per_second_);
  if (all_there) broken_.clear();
  return all_there;
}

void WanRun::set_rates_of_broken(double bits_per_second) {
  for (const int island : broken_) {
    for (int other = 0; other < box_->hosts(); ++other) {
      if (other == host_of_island(island)) continue;
      box_->change_pair(host_of_island(island), other, [&](WanPath& path) { path.bits_per_second = bits_per_second; });
    }
  }
}

// ---- islands
// ------------------------------------------------------------------------------------------------------------

void WanRun::start(int island) {
  Member& member = islands_[static_cast<std::size_t>(island)];
  member.process.reset();
  member.process.emplace(launch(host_of_island(island), "atoll-trainer",
                                {"run", "--home", member.home.directory.string()}, member.home.trainer_log()));
}

void WanRun::signal(int island, int number) {
  auto& process = islands_[static_cast<std::size_t>(island)].process;
  if (process) process->send_signal(number);
}

void WanRun::stop(int island) {
  broken_.insert(island);
  signal(island, SIGSTOP);
}

void WanRun::kill(int island) {
  broken_.insert(island);
  signal(island, SIGKILL);
  islands_[static_cast<std::size_t>(island)].process.reset();
}

void WanRun::cut_off(int island) {
  broken_.insert(island);
  for (int host = 0; host < box_->hosts(); ++host) {
    if (host != host_of_island(island)) box_->cut(host_of_island(island), host);
  }
}

void WanRun::reconnect(int island) {
  for (int host = 0; host < box_->hosts(); ++host) {
    if (host != host_of_island(island)) box_->restore(host_of_island(island), host);
  }
}

std::pair<int, int> WanRun::busiest_edge() {
  std::pair<int, int> busiest{0, 1};
  std::int64_t most = -1;
  carried_.resize(islands_.size() * islands_.size());
  for (int a = 0; a < islands(); ++a) {
    for (int b = a + 1; b < islands(); ++b) {
      const std::int64_t total = box_->counts(host_of_island(a), host_of_island(b)).carried +
                                 box_->counts(host_of_island(b), host_of_island(a)).carried;
      std::int64_t& before = carried_[static_cast<std::size_t>(a) * islands_.size() + static_cast<std::size_t>(b)];
      if (total - before > most) {
        most = total - before;
        busiest = {a, b};
      }
      before = total;
    }
  }
  return busiest;
}

Holdings WanRun::hub_holdings() const { return holdings_of(hub_->pid()); }

Holdings WanRun::holdings(int island) const {
  const auto& process = islands_[static_cast<std::size_t>(island)].process;
  return process ? holdings_of(process->pid()) : Holdings{};
}

}  // namespace atl::wan
