#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/file.h>

#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "net/base/file.h"
#include "net/base/unique_fd.h"
#include "net/base/unix_time.h"
#include "net/check/admission.h"
#include "net/check/run_needs.h"
#include "net/enrol/enroller.h"
#include "net/enrol/sqlite_invite_store.h"
#include "net/hub/hub.h"
#include "net/hub/hub_home.h"
#include "net/hub/hub_listener.h"
#include "net/hub/hub_view.h"
#include "net/hub/island_dialer.h"
#include "net/mesh/commit_signature.h"
#include "net/mesh/round_coordinator.h"
#include "net/tls/x509.h"

namespace atl {
namespace {

namespace asio = boost::asio;

constexpr std::chrono::milliseconds kShutdownTimeout{1'000};
constexpr std::size_t kMostRemoved = 64;  // islands that rosters name
constexpr std::chrono::milliseconds kLongestTick{250};
constexpr std::chrono::milliseconds kShortestTick{20};
constexpr std::chrono::seconds kHelloTimeout{10};

// Two hubs of one run would commit different things.
Result<UniqueFd> lock_home(const HubHome& home) {
  UniqueFd lock(::open(home.run_file().c_str(), O_RDONLY | O_CLOEXEC));
  if (!lock) return errno_error("open", home.run_file());
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    return Error{ErrorCode::kPermissionDenied,
                 fmt::format("another process serves the hub in {}; stop that one first", home.directory.string())};
  }
  return lock;
}

std::vector<Address> reachable_at(const HubServeOptions& options, std::uint16_t port) {
  std::vector<Address> addresses = options.advertised;
  if (addresses.empty()) addresses.push_back(options.listen);
  for (Address& address : addresses) {
    if (address.port == 0) address.port = port;
  }
  return addresses;
}

Result<std::string> key_sha256_of(const std::string& pem) {
  ATOLL_ASSIGN_OR_RETURN(const UniqueCertificate certificate, parse_certificate(pem));
  return to_hex(public_key_digest(certificate.get()));
}

}  // namespace

class HubServer::Impl final : public HubGate {
 public:
  explicit Impl(OnEvent on_event) : on_event_(std::move(on_event)) {}
  ~Impl() override;

  Status start(const HubServeOptions& options);
  std::uint16_t port() const { return listener_->port(); }
  HubState state() const {
    std::lock_guard lock(mutex_);
    return state_;
  }
  Status health() const {
    std::lock_guard lock(mutex_);
    return health_;
  }
  void send_away(const std::string& island) {
    asio::post(io_, [this, id = IslandId{island}] { send_away_now(id); });
  }

 private:
  // HubGate, on the hub's thread
  std::optional<EnrolledIsland> admit(const PeerCertificate& certificate) override;
  Result<std::string> renew(const EnrolledIsland& island, const std::string& certificate_pem) override;
  EnrolResponse enrol(const EnrolRequest& request) override;
  AboutResponse about(const AboutRequest& request) override;
  asio::awaitable<void> serve_island(std::shared_ptr<IslandLink> link) override;

  Status renew_own_certificate();
  Status make_coordinator();
  void run();
  Result<IslandConnected> read_hello(IslandLink& link, const std::string& text) const;
  std::string sign(const HubCommit& commit) const;
  CheckAbout about() const;
  asio::awaitable<void> tick();
  asio::awaitable<void> close_after_silence(std::weak_ptr<IslandLink> link, std::shared_ptr<bool> greeted);
  void step(const CoordinatorEvent& event);
  Status carry_out(const CoordinatorAction& action);
  void announce(const CoordinatorNews& news);
  void stop_serving(const Error& error);
  void send_away_now(const IslandId& id);

  const OnEvent on_event_;
  HubHome home_;
  std::chrono::seconds certificate_lifetime_{};  // of islands
  UniqueFd lock_;
  RunConfig run_;
  CheckPolicy policy_;  // what the run asks of machines
  RunAbout about_run_;  // what everybody may know
  Identity identity_;
  std::optional<CertificateAuthority> authority_;
  std::unique_ptr<HubStore> store_;
  std::optional<SqliteInviteStore> invites_;
  std::optional<Enroller> enroller_;
  std::optional<DataFiles> data_;
  std::optional<HubView> view_;
  std::optional<RoundCoordinator> coordinator_;

  mutable std::mutex mutex_;
  HubState state_;  // guarded by mutex_
  Status health_;   // guarded by mutex_

  asio::io_context io_{1};
  std::optional<TlsContext> tls_;
  std::unique_ptr<CheckEndpoints> checks_;
  std::unique_ptr<HubListener> listener_;
  std::map<IslandId, std::shared_ptr<IslandLink>> links_;
  std::vector<IslandId> removed_;  // since it started, the last of them
  std::jthread thread_;
  std::unique_ptr<IslandDialer> dialer_;  // last: its threads post to io_
};

// ---- starting and stopping

Status HubServer::Impl::start(const HubServeOptions& options) {
  home_ = HubHome{options.directory};
  certificate_lifetime_ = options.certificate_lifetime;
  ATOLL_ASSIGN_OR_RETURN(run_, load_run(home_));
  ATOLL_ASSIGN_OR_RETURN(policy_, parse_check_policy(run_.check_json));
  ATOLL_ASSIGN_OR_RETURN(lock_, lock_home(home_));
  ATOLL_ASSIGN_OR_RETURN(identity_, load_identity(home_.identity()));
  ATOLL_ASSIGN_OR_RETURN(CertificateAuthority authority, CertificateAuthority::load(home_.authority()));
  authority_.emplace(std::move(authority));
  ATOLL_RETURN_IF_ERROR(renew_own_certificate());
  ATOLL_ASSIGN_OR_RETURN(TlsContext tls, TlsContext::hub_server(identity_));
  tls_.emplace(std::move(tls));
  ATOLL_ASSIGN_OR_RETURN(const HubFile file, load_hub_file(home_));
  ATOLL_ASSIGN_OR_RETURN(const DatasetManifest manifest, DatasetManifest::from_json(run_.dataset_json));
  data_.emplace(file.dataset, manifest);
  about_run_ = {run_.run_id, run_.name, file.operator_name, describe_model(run_), 0};
  if (const auto needs = needs_of(run_); needs.ok()) about_run_.parameters = needs->parameters;
  ATOLL_ASSIGN_OR_RETURN(store_, HubStore::open(home_.database()));
  ATOLL_ASSIGN_OR_RETURN(SqliteInviteStore invites, SqliteInviteStore::open(store_->database()));
  invites_.emplace(std::move(invites));
  ATOLL_RETURN_IF_ERROR(make_coordinator());
  ATOLL_ASSIGN_OR_RETURN(checks_, CheckEndpoints::start(io_, identity_, [this] { return about(); }));
  listener_ = std::make_unique<HubListener>(io_, *tls_, *data_, *checks_, *this);
  ATOLL_RETURN_IF_ERROR(listener_->listen(options.listen));
  const std::vector<Address> addresses = reachable_at(options, listener_->port());
  ATOLL_RETURN_IF_ERROR(store_->save_addresses(addresses));
  for (const Address& address : addresses) state_.addresses.push_back(to_string(address));
  view_.emplace(state_);
  enroller_.emplace(
      *authority_, *invites_, addresses, [] { return std::chrono::system_clock::now(); }, certificate_lifetime_);
  const auto on_dialled = [this](const IslandId& island, const Address& address, bool answered) {
    asio::post(io_, [this, event = IslandDialled{island, address, answered}] { step(event); });
  };
  ATOLL_ASSIGN_OR_RETURN(dialer_, IslandDialer::start(identity_, on_dialled));
  asio::co_spawn(io_, tick(), asio::detached);
  thread_ = std::jthread([this] { run(); });
  spdlog::info("hub run={} port={} round={}", run_.run_id, listener_->port(), coordinator_->committed().value);
  return ok_status();
}

Status HubServer::Impl::make_coordinator() {
  ATOLL_ASSIGN_OR_RETURN(CoordinatorMemory memory, store_->memory());
  state_.run_id = run_.run_id;
  state_.name = run_.name;
  state_.phase = "waiting";
  state_.outer_step = memory.committed.value;
  state_.inner_steps = run_.inner_steps;
  state_.max_rounds = run_.max_rounds;
  state_.min_islands = run_.min_islands;
  ATOLL_ASSIGN_OR_RETURN(state_.rounds, store_->rounds(HubState::kMaxRounds));
  ATOLL_ASSIGN_OR_RETURN(state_.first_validation, store_->validation(/*first=*/true));
  ATOLL_ASSIGN_OR_RETURN(state_.last_validation, store_->validation(/*first=*/false));
  coordinator_.emplace(run_, std::move(memory), [this](const HubCommit& commit) { return sign(commit); });
  return ok_status();
}

void HubServer::Impl::run() {
  try {
    io_.run();
  } catch (const std::exception& error) {
    stop_serving(Error{ErrorCode::kInternal, fmt::format("the hub's thread ended: {}", error.what())});
  }
}

HubServer::Impl::~Impl() {
  if (!thread_.joinable()) return;
  asio::post(io_, [this] {
    listener_->close();
    for (const auto& [id, link] : links_) link->close_when_sent();
  });
  const Deadline deadline = Deadline::after(kShutdownTimeout);
  std::atomic<bool> closed{false};
  while (!closed && !deadline.expired()) {
    asio::post(io_, [this, &closed] { closed = links_.empty(); });
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  io_.stop();
  thread_.join();
}

// A hub that cannot keep its promises on disk makes none: islands wait for the next one.
void HubServer::Impl::stop_serving(const Error& error) {
  spdlog::error("hub stopped error=\"{}\"", error.message);
  {
    std::lock_guard lock(mutex_);
    health_ = error;
  }
  listener_->close();
  for (const auto& [id, link] : links_) link->cut();
}

// The roster that follows tells the others to close what they have open with it.
void HubServer::Impl::send_away_now(const IslandId& id) {
  removed_.push_back(id);
  if (removed_.size() > kMostRemoved) removed_.erase(removed_.begin());
  const auto link = links_.find(id);
  if (link == links_.end()) return;
  const std::string why = "removed from the run by its operator";
  link->second->send(encode(HubMessage(HubGoodbye{ErrorCode::kPermissionDenied, why, false})));
  link->second->close_when_sent();
  links_.erase(link);
  step(IslandSaid{id, IslandLeaving{why}});
}

// ---- the gate

std::optional<EnrolledIsland> HubServer::Impl::admit(const PeerCertificate& certificate) {
  auto island = store_->find_island(to_hex(certificate.key_sha256));
  if (!island.ok()) {
    spdlog::error("hub island={} error=\"{}\"", certificate.name.value, island.error().message);
    return std::nullopt;
  }
  if (*island && (*island)->id != certificate.name) return std::nullopt;
  return *island;
}

Result<std::string> HubServer::Impl::renew(const EnrolledIsland& island, const std::string& certificate_pem) {
  spdlog::info("certificate renewed island={}", island.id.value);
  return authority_->renew(certificate_pem,
                           Validity::starting(std::chrono::system_clock::now(), certificate_lifetime_));
}

// Its own certificate is made anew as well, when a hub that holds an old one starts: islands know it by its authority.
Status HubServer::Impl::renew_own_certificate() {
  const auto now = std::chrono::system_clock::now();
  if (!is_due_for_renewal(identity_, now)) return ok_status();
  ATOLL_ASSIGN_OR_RETURN(identity_, authority_->make_hub_identity(Validity::starting(now, kHubCertificateLifetime)));
  return save_identity(home_.identity(), identity_);
}

EnrolResponse HubServer::Impl::enrol(const EnrolRequest& request) {
  EnrolResponse response = enroller_->handle(request);
  if (const auto* refused = std::get_if<Error>(&response)) {
    spdlog::info("enrol invite={} refused={}", request.invite_id, to_string(refused->code));
    return response;
  }
  const auto& grant = std::get<EnrolGrant>(response);
  Result<std::string> key = key_sha256_of(grant.certificate_pem);
  if (!key.ok()) return key.error();
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  const Status added = store_->add_island({grant.island, request.display_name, *key, now});
  if (!added.ok()) {
    stop_serving(added.error());
    return Error{ErrorCode::kInternal, "the hub cannot write its roster; ask who runs it, then try again"};
  }
  spdlog::info("enrol invite={} island={} name=\"{}\"", request.invite_id, grant.island.value, request.display_name);
  return response;
}

AboutResponse HubServer::Impl::about(const AboutRequest& request) {
  if (request.run_id == run_.run_id) return about_run_;
  return Error{ErrorCode::kInviteOtherRun,
               fmt::format("this invite is for another run; the hub at this address leads run {}", run_.run_id)};
}

Result<IslandConnected> HubServer::Impl::read_hello(IslandLink& link, const std::string& text) const {
  ATOLL_ASSIGN_OR_RETURN(const IslandMessage message, decode_island_message(text));
  const auto* hello = std::get_if<IslandHello>(&message);
  if (hello == nullptr) return Error{ErrorCode::kProtocol, "the first message of an island is its hello"};
  ATOLL_RETURN_IF_ERROR(admit_checked(policy_, hello->checked));
  const EnrolledIsland& island = link.island();
  RosterEntry entry{island.id,
                    hello->display_name.empty() ? island.display_name : hello->display_name,
                    Address{hello->advertised_host.empty() ? link.host() : hello->advertised_host, hello->listen_port},
                    island.key_sha256,
                    hello->software,
                    hello->region};
  return IslandConnected{std::move(entry), *hello};
}

asio::awaitable<void> HubServer::Impl::close_after_silence(std::weak_ptr<IslandLink> link,
                                                           std::shared_ptr<bool> greeted) {
  asio::steady_timer timer(io_, kHelloTimeout);
  co_await timer.async_wait(kAwait);
  if (const auto alive = link.lock(); alive && !*greeted) alive->cut();
}

asio::awaitable<void> HubServer::Impl::serve_island(std::shared_ptr<IslandLink> link) {
  const IslandId id = link->island().id;
  const auto greeted = std::make_shared<bool>(false);
  asio::co_spawn(io_, close_after_silence(link, greeted), asio::detached);
  const Result<std::string> first = co_await link->read();
  if (!first.ok()) co_return;
  *greeted = true;
  const Result<IslandConnected> connected = read_hello(*link, *first);
  if (!connected.ok()) {
    link->send(encode(HubMessage(HubGoodbye{connected.error().code, connected.error().message, false})));
    link->close_when_sent();
    co_return;
  }
  if (const auto old = links_.find(id); old != links_.end()) old->second->cut();
  links_[id] = link;
  step(*connected);
  for (;;) {
    const Result<std::string> text = co_await link->read();
    if (!text.ok()) break;
    const auto current = links_.find(id);
    if (current == links_.end() || current->second != link) co_return;  // sent away, or replaced by a newer connection
    Result<IslandMessage> message = decode_island_message(*text);
    if (!message.ok()) {
      spdlog::warn("mesh island={} error=\"{}\"", id.value, message.error().message);
      link->send(encode(HubMessage(HubGoodbye{message.error().code, message.error().message, false})));
      link->close_when_sent();
      break;
    }
    step(IslandSaid{id, std::move(*message)});
  }
  const auto current = links_.find(id);
  if (current == links_.end() || current->second != link) co_return;
  links_.erase(current);
  step(IslandDisconnected{id});
}

// ---- the coordinator

asio::awaitable<void> HubServer::Impl::tick() {
  const auto period = std::clamp(run_.heartbeat / 4, kShortestTick, kLongestTick);
  asio::steady_timer timer(io_);
  while (health().ok()) {
    timer.expires_after(period);
    co_await timer.async_wait(kAwait);
    step(Tick{});
  }
}

std::string HubServer::Impl::sign(const HubCommit& commit) const {
  const Result<std::string> signature = sign_commit(identity_, commit);
  return signature.ok() ? *signature : std::string();
}

// For members that check their nodes.
CheckAbout HubServer::Impl::about() const {
  CheckAbout about{run_, 0, 0, {}};
  about.time = unix_time_now();
  for (const auto& [id, island] : coordinator_->islands()) {
    if (about.islands.size() == kMaxCheckIslands) break;
    about.islands.push_back({id, island.entry.display_name, island.entry.address, coordinator_->dialable(id)});
  }
  const HubState state = this->state();
  double inner = 0, all = 0;
  for (const HubState::Island& island : state.islands) {
    inner += island.inner_seconds;
    all += island.inner_seconds + island.sync_seconds;
  }
  if (!state.rounds.empty() && all > 0) about.inner_seconds = state.rounds.back().seconds * inner / all;
  return about;
}

void HubServer::Impl::step(const CoordinatorEvent& event) {
  if (!health().ok()) return;
  const auto now = Clock::now();
  for (const CoordinatorAction& action : coordinator_->next(event, now)) {
    const Status done = carry_out(action);
    if (!done.ok()) return stop_serving(done.error());  // what follows must not be said
  }
  HubState state = view_->build(*coordinator_, now);
  std::lock_guard lock(mutex_);
  state_ = std::move(state);
}

Status HubServer::Impl::carry_out(const CoordinatorAction& action) {
  if (const auto* send = std::get_if<SendTo>(&action)) {
    const auto link = links_.find(send->island);
    if (link == links_.end()) return ok_status();
    HubMessage message = send->message;
    if (auto* roster = std::get_if<HubRoster>(&message)) roster->removed = removed_;
    link->second->send(encode(message));
    return ok_status();
  }
  if (const auto* close = std::get_if<CloseConnection>(&action)) {
    const auto link = links_.find(close->island);
    if (link == links_.end()) return ok_status();
    link->second->close_when_sent();
    links_.erase(link);
    return ok_status();
  }
  if (const auto* dial = std::get_if<DialIsland>(&action)) {
    dialer_->dial(dial->island, dial->address);
    return ok_status();
  }
  if (const auto* publish = std::get_if<Publish>(&action)) {
    if (const auto* validated = std::get_if<IslandValidated>(&publish->news)) {
      ATOLL_RETURN_IF_ERROR(store_->save(*validated));
    }
    announce(publish->news);
    return ok_status();
  }
  if (const auto* leases = std::get_if<PersistLeases>(&action)) return store_->save(*leases);
  if (const auto* attempt = std::get_if<PersistAttempt>(&action)) return store_->save(*attempt);
  if (const auto* hash = std::get_if<PersistStateHash>(&action)) return store_->save(*hash);
  const auto& commit = std::get<PersistCommit>(action);
  if (commit.commit.signature.empty()) {
    return Error{ErrorCode::kInternal, "the hub's key cannot sign a commit; restore its identity from a backup"};
  }
  return store_->save(commit);
}

void HubServer::Impl::announce(const CoordinatorNews& news) {
  view_->learn(news);
  const NewsEvent event = to_event(news);
  spdlog::info("hub event={} data={}", event.name, event.data.dump());
  if (on_event_) on_event_(event.name, event.data);
}

// ---- the public face

Result<std::unique_ptr<HubServer>> HubServer::start(const HubServeOptions& options, OnEvent on_event) {
  auto impl = std::make_unique<Impl>(std::move(on_event));
  ATOLL_RETURN_IF_ERROR(impl->start(options));
  return std::unique_ptr<HubServer>(new HubServer(std::move(impl)));
}

HubServer::HubServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HubServer::~HubServer() = default;
std::uint16_t HubServer::port() const { return impl_->port(); }
HubState HubServer::state() const { return impl_->state(); }
void HubServer::send_away(const std::string& island) { impl_->send_away(island); }
Status HubServer::health() const { return impl_->health(); }

}  // namespace atl
