#include "tests/net/hub/loopback_hub.h"

#include <spdlog/spdlog.h>

#include <nlohmann/json.hpp>

#include "net/base/file.h"
#include "net/base/mutex.h"
#include "net/base/sha256.h"
#include "net/data/prepare.h"
#include "net/enrol/client.h"
#include "net/hub/initial_state.h"
#include "tests/fakes/test_run.h"

namespace atl {
namespace {

using namespace std::chrono_literals;

template <class T>
T must(Result<T> result) {
  if (!result.ok()) qFatal("%s", result.error().message.c_str());
  return std::move(result).value();
}

std::string hash_of(const std::string& text) { return sha256_hex(as_bytes(text)); }

}  // namespace

RunConfig loopback_run(std::uint32_t islands, std::uint32_t max_rounds) {
  RunConfig run;
  run.name = "loopback";
  run.model_json = tiny_model_json();
  run.min_islands = islands;
  run.max_rounds = max_rounds;
  run.inner_steps = 2;
  run.sequences_per_step = 2;
  run.sequence_length = 16;
  run.heartbeat = 100ms;
  run.dead_after = 1000ms;
  run.straggler_grace = 1500ms;
  run.validate_every = 1;
  return run;
}

// ---- the hub

LoopbackHub::LoopbackHub(RunConfig run, std::chrono::seconds certificate_lifetime, const std::string& operator_name,
                         const BaseModel* base_model)
    : certificate_lifetime_(certificate_lifetime) {
  std::string text;
  for (int i = 0; text.size() < 64 * 1024; ++i)
    text += "An atoll is a ring of islands, number " + std::to_string(i) + ".\n";
  const std::filesystem::path file = std::filesystem::path(directory_.path().toStdString()) / "text.txt";
  if (!write_file_atomically(file, text, FileMode::kPublic).ok()) qFatal("cannot write the text");
  must(prepare_dataset({file}, dataset(), {}, {}));
  HubInitOptions options{directory(), {{dataset()}}, std::move(run), operator_name};
  options.base_model = base_model;
  run_ = must(hub_init(options));
  start();
}

std::filesystem::path LoopbackHub::directory() const {
  return std::filesystem::path(directory_.path().toStdString()) / "hub";
}
std::filesystem::path LoopbackHub::dataset() const {
  return std::filesystem::path(directory_.path().toStdString()) / "dataset";
}

void LoopbackHub::start() {
  HubServeOptions options;
  options.directory = directory();
  options.listen = {"127.0.0.1", port_};
  options.certificate_lifetime = certificate_lifetime_;
  options.joins_at_once = 100'000;  // connections are broken at each of their bytes
  server_ = must(HubServer::start(options, [this](std::string_view event, const nlohmann::json&) {
    MutexLock lock(mutex_);
    events_.emplace_back(event);
  }));
  port_ = server_->port();
}

Identity LoopbackHub::enrol(const std::string& name) {
  const InviteReport report = must(create_invite(directory(), {}));
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  const Invite invite = must(decode_invite(report.text, now));
  return must(atl::enrol(invite, name, Deadline::after(5s))).identity;
}

bool LoopbackHub::wait(const std::function<bool(const HubState&)>& holds, double seconds) {
  const Deadline deadline = Deadline::after(std::chrono::duration_cast<std::chrono::nanoseconds>(Seconds(seconds)));
  while (!deadline.expired()) {
    if (holds(server_->state())) return true;
    std::this_thread::sleep_for(5ms);
  }
  return false;
}

int LoopbackHub::count(const std::string& event) const {
  MutexLock lock(mutex_);
  return static_cast<int>(std::count(events_.begin(), events_.end(), event));
}

// ---- an island

PuppetIsland::PuppetIsland(Address hub, const Identity& identity, bool reachable, std::string name,
                           std::string advertised)
    : name_(std::move(name)), advertised_(std::move(advertised)) {
  if (reachable) {
    const auto admit = [](const PeerCertificate&) { return ok_status(); };
    listener_ = must(PeerListener::start({.bind = {"127.0.0.1", 0}}, must(TlsContext::island_server(identity)), admit,
                                         inbox_, [](TlsConnection, const AbortSignal&) {}));
  }
  MeshClientOptions options;
  options.hub_addresses = {std::move(hub)};
  options.reconnect_for = 5s;
  MeshClient::Callbacks callbacks;
  callbacks.hello = [this] { return hello(); };
  callbacks.heartbeat = [this] {
    return IslandHeartbeat{OuterStep{outer_step_}, "training", 1, 2.0, 100.0, 1, 1, 1, 1};
  };
  callbacks.lost = [this](const std::string&, std::optional<Seconds>) { ++times_lost_; };
  callbacks.back = [this] { ++times_back_; };
  client_ = must(MeshClient::start(std::move(options), identity, std::move(callbacks)));
  thread_ = std::jthread([this] { run(); });
}

PuppetIsland::~PuppetIsland() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
}

IslandHello PuppetIsland::hello() const {
  MutexLock lock(mutex_);
  IslandHello hello;
  hello.software = "puppet";
  hello.advertised_host = advertised_;
  hello.display_name = name_;
  hello.listen_port = listener_ ? listener_->port() : 1;
  if (!state_hash_.empty()) {
    hello.outer_step = OuterStep{outer_step_};
    hello.state_hash = state_hash_;
  }
  return hello;
}

std::string PuppetIsland::state_hash() const {
  MutexLock lock(mutex_);
  return state_hash_;
}

std::vector<AttemptMember> PuppetIsland::last_order() const {
  MutexLock lock(mutex_);
  return last_order_;
}

std::optional<Error> PuppetIsland::ended() const {
  MutexLock lock(mutex_);
  return ended_;
}

void PuppetIsland::run() {
  while (!stop_) {
    if (held_) {
      std::this_thread::sleep_for(2ms);
      continue;
    }
    const Result<HubMessage> message = client_->next(Deadline::after(20ms));
    if (message.ok()) {
      answer(*message);
    } else if (message.error().code != ErrorCode::kTimeout) {
      MutexLock lock(mutex_);
      ended_ = message.error();
      return;
    }
  }
}

void PuppetIsland::answer(const HubMessage& message) {
  if (const auto* welcome = std::get_if<HubWelcome>(&message)) {
    initial_hash_ = initial_state_hash(welcome->run).value();
  } else if (std::holds_alternative<HubInitialise>(message)) {
    {
      MutexLock lock(mutex_);
      state_hash_ = initial_hash_;
    }
    client_->send(IslandRecovered{OuterStep{0}, initial_hash_});
  } else if (const auto* recover = std::get_if<HubRecover>(&message)) {
    {
      MutexLock lock(mutex_);
      state_hash_ = recover->state_hash;
      outer_step_ = recover->outer_step.value;
    }
    client_->send(IslandRecovered{recover->outer_step, recover->state_hash});
  } else if (const auto* begin = std::get_if<HubRoundBegin>(&message)) {
    round_ = *begin;
    if (begin->validate) client_->send(IslandValidation{begin->round, 2.0});
    client_->send(IslandReady{begin->round, std::uint64_t{begin->inner_steps} * 2 * 16, 0.5, 3.0});
  } else if (const auto* attempt = std::get_if<HubAttempt>(&message)) {
    {
      MutexLock lock(mutex_);
      last_order_ = attempt->order;
    }
    std::string of = std::to_string(attempt->round.value);
    for (const AttemptMember& member : attempt->order) of += member.id.value + std::to_string(member.tokens);
    average_ = {attempt->attempt, hash_of(of)};
    client_->send(IslandHave{attempt->round, attempt->attempt, average_.second, 0.01});
  } else if (const auto* abort = std::get_if<HubAbort>(&message)) {
    if (average_.first == abort->attempt) {
      client_->send(IslandAttemptFailed{abort->round, abort->attempt, std::nullopt, abort->reason});
    }
  } else if (const auto* commit = std::get_if<HubCommit>(&message)) {
    if (commit->digest == average_.second) {
      MutexLock lock(mutex_);
      state_hash_ = hash_of(state_hash_ + commit->digest);
      outer_step_ = commit->round.value + 1;
      average_ = {};
    }
    client_->send(IslandApplied{OuterStep{outer_step_}, state_hash()});
  } else if (const auto* goodbye = std::get_if<HubGoodbye>(&message)) {
    finished_ = goodbye->finished;
  }
}

}  // namespace atl
