#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <future>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "net/base/encoding.h"
#include "net/base/log_limit.h"
#include "net/base/mutex.h"
#include "net/base/unique_fd.h"
#include "net/base/unix_time.h"
#include "net/check/admission.h"
#include "net/check/run_needs.h"
#include "net/hub/hub.h"
#include "net/hub/hub_home.h"
#include "net/hub/hub_listener.h"
#include "net/hub/hub_view.h"
#include "net/hub/initial_state.h"
#include "net/hub/island_dialer.h"
#include "net/hub/member_roll.h"
#include "net/mesh/commit_signature.h"
#include "net/mesh/round_coordinator.h"
#include "net/mesh/spawn.h"
#include "net/tls/signature.h"

namespace atl {
namespace {

namespace asio = boost::asio;

constexpr std::chrono::milliseconds kShutdownTimeout{1'000};
constexpr std::chrono::milliseconds kLongestTick{250};
constexpr std::chrono::milliseconds kShortestTick{20};
constexpr std::chrono::seconds kHelloTimeout{10};
constexpr std::chrono::seconds kRollbackTimeout{10};
constexpr std::chrono::seconds kHostsPace{60};
constexpr const char* kRemoved = "removed from the run by its operator";

std::vector<Address> reachable_at(const HubServeOptions& options, std::uint16_t port) {
  std::vector<Address> addresses = options.advertised;
  if (addresses.empty()) addresses.push_back(options.listen);
  for (Address& address : addresses) {
    if (address.port == 0) address.port = port;
  }
  return addresses;
}

}  // namespace

class HubServer::Impl final : public HubGate {
 public:
  explicit Impl(OnEvent on_event) : on_event_(std::move(on_event)) {}
  ~Impl() override;

  Status start(const HubServeOptions& options);
  std::uint16_t port() const { return listener_->port(); }
  HubState state() const {
    MutexLock lock(mutex_);
    return state_;
  }
  Status health() const {
    MutexLock lock(mutex_);
    return health_;
  }
  Status roll_back(OuterStep to, const std::string& reason);
  void send_away(const std::string& island) {
    asio::post(io_, [this, id = IslandId{island}] { send_away_now(id); });
  }

 private:
  // HubGate, on the hub's thread
  Result<std::optional<EnrolledIsland>> admit(const PeerCertificate& certificate) override;
  Result<std::string> renew(const EnrolledIsland& island, const std::string& certificate_pem) override;
  EnrolResponse enrol(const EnrolRequest& request) override;
  AboutResponse about(const AboutRequest& request) override;
  asio::awaitable<void> serve_island(std::shared_ptr<IslandLink> link) override;
  void stop_serving(const Error& error) override;

  Status renew_own_certificate();
  Status make_coordinator();
  void run();
  Result<IslandConnected> read_hello(IslandLink& link, const std::string& text) const;
  std::string sign(const HubCommit& commit) const;
  Result<SignedEpoch> sign_epoch(std::uint64_t epoch) const;
  void take_proof(const IslandHello& hello, IslandConnected& event) const;
  Status roll_back_now(OuterStep to, const std::string& reason, bool automatic);
  asio::awaitable<void> tick();
  asio::awaitable<void> close_after_silence(std::weak_ptr<IslandLink> link, std::shared_ptr<bool> greeted);
  asio::awaitable<bool> greet(std::shared_ptr<IslandLink> link);
  asio::awaitable<void> hear(std::shared_ptr<IslandLink> link);
  void forget(const std::shared_ptr<IslandLink>& link);
  bool is_still_member(IslandLink& link);
  void remember_host(const IslandId& island, const std::string& host);
  void save_hosts();
  void step(const CoordinatorEvent& event);
  void take(const CoordinatorEvent& event);
  Clock::time_point round_time();
  Status carry_out_in_the_end(const CoordinatorAction& action);
  Status carry_out(const CoordinatorAction& action);
  void announce(const CoordinatorNews& news);
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
  std::optional<MemberRoll> members_;
  std::optional<Enroller> enroller_;
  std::optional<DataFiles> data_;
  std::optional<HubView> view_;
  std::optional<RoundCoordinator> coordinator_;
  SignedEpoch epoch_;  // in which it serves

  std::map<IslandId, std::string> hosts_;  // from which islands came last: after a restart places are kept for them
  bool hosts_changed_ = false;             // since they were saved
  Clock::time_point hosts_saved_;
  LogLimit renewals_;  // a line an island now and then, however often it asks
  mutable Mutex mutex_;
  HubState state_ ATOLL_GUARDED_BY(mutex_);
  Status health_ ATOLL_GUARDED_BY(mutex_);

  std::set<std::shared_ptr<IslandLink>> ungreeted_;  // before io_, whose coroutines are in it
  std::atomic<bool> stopping_{false};

  asio::io_context io_{1};
  std::optional<TlsContext> tls_;
  std::unique_ptr<CheckEndpoints> checks_;
  std::unique_ptr<HubListener> listener_;
  std::map<IslandId, std::shared_ptr<IslandLink>> links_;
  Clock::time_point last_step_ = Clock::now();
  Clock::duration stood_still_{0};
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
  ATOLL_ASSIGN_OR_RETURN(MemberRoll members,
                         MemberRoll::open(*store_, [this](const Error& error) { stop_serving(error); }));
  members_.emplace(std::move(members));
  ATOLL_RETURN_IF_ERROR(make_coordinator());
  ATOLL_ASSIGN_OR_RETURN(
      checks_, CheckEndpoints::start(io_, identity_, [this] { return check_about(run_, *coordinator_, state()); }));
  listener_ = std::make_unique<HubListener>(io_, *tls_, *data_, *checks_, *this);
  ATOLL_ASSIGN_OR_RETURN(hosts_, store_->hosts());
  std::vector<std::string> hosts;
  for (const auto& [island, host] : hosts_) hosts.push_back(host);
  listener_->expect(hosts);
  ATOLL_RETURN_IF_ERROR(listener_->listen(options.listen));
  const std::vector<Address> addresses = reachable_at(options, listener_->port());
  ATOLL_RETURN_IF_ERROR(store_->save_addresses(addresses));
  for (const Address& address : addresses) state_.addresses.push_back(to_string(address));
  view_.emplace(state_);
  enroller_.emplace(
      *authority_, store_->enrolments(), addresses, [] { return std::chrono::system_clock::now(); },
      certificate_lifetime_);
  const auto on_dialled = [this](const IslandId& island, const Address& address, bool answered) {
    asio::post(io_, [this, event = IslandDialled{island, address, answered}] { step(event); });
  };
  ATOLL_ASSIGN_OR_RETURN(dialer_, IslandDialer::start(identity_, on_dialled));
  last_step_ = Clock::now();
  spawn(io_, tick(), [this](const std::string& what) {
    stop_serving(Error{ErrorCode::kInternal, fmt::format("the hub's clock ended: {}; start it again", what)});
  });
  thread_ = std::jthread([this] { run(); });
  spdlog::info("hub run={} port={} round={}", run_.run_id, listener_->port(), coordinator_->committed().value);
  return ok_status();
}

Status HubServer::Impl::make_coordinator() {
  ATOLL_ASSIGN_OR_RETURN(const std::uint64_t epoch, store_->begin_epoch(unix_milliseconds_now()));
  ATOLL_ASSIGN_OR_RETURN(epoch_, sign_epoch(epoch));
  ATOLL_ASSIGN_OR_RETURN(CoordinatorMemory memory, store_->memory());
  if (memory.committed.value == 0 && !memory.agreed_hash) {
    spdlog::info("hub run={} computes=\"the hash of the initial state\"", run_.run_id);
    ATOLL_ASSIGN_OR_RETURN(memory.agreed_hash, save_initial_state_hash(run_, *store_));
    memory.state_hashes[OuterStep{0}] = *memory.agreed_hash;
  }
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
  stopping_ = true;
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
  {
    MutexLock lock(mutex_);
    if (!health_.ok()) return;  // the first error is the one that tells something
    health_ = error;
  }
  spdlog::error("hub stopped error=\"{}\"", error.message);
  listener_->close();
  for (const auto& [id, link] : links_) link->cut();
}

// The roster that follows tells the others to close what they have open with it.
void HubServer::Impl::send_away_now(const IslandId& id) {
  members_->note_removed(id);
  listener_->cut(id);
  for (const auto& link : ungreeted_) {
    if (link->island().id == id) link->dismiss(ErrorCode::kPermissionDenied, kRemoved);
  }
  if (const auto link = links_.find(id); link != links_.end()) {
    link->second->dismiss(ErrorCode::kPermissionDenied, kRemoved);
    links_.erase(link);
  }
  hosts_changed_ = hosts_.erase(id) > 0 || hosts_changed_;
  step(IslandRemoved{id, kRemoved});
}

// ---- the gate

Result<std::optional<EnrolledIsland>> HubServer::Impl::admit(const PeerCertificate& certificate) {
  return members_->find(certificate);
}

Result<std::string> HubServer::Impl::renew(const EnrolledIsland& island, const std::string& certificate_pem) {
  if (const auto held_back = renewals_.pass(island.id.value)) {
    spdlog::info("certificate renewed island={} held_back={}", island.id.value, *held_back);
  }
  return authority_->renew(certificate_pem,
                           Validity::starting(std::chrono::system_clock::now(), certificate_lifetime_));
}

// Its own certificate is made anew as well, when a hub that holds an old one starts: islands know it by its
// authority.
Status HubServer::Impl::renew_own_certificate() {
  const auto now = std::chrono::system_clock::now();
  if (!is_due_for_renewal(identity_, now)) return ok_status();
  ATOLL_ASSIGN_OR_RETURN(identity_, authority_->make_hub_identity(Validity::starting(now, kHubCertificateLifetime)));
  return save_identity(home_.identity(), identity_);
}

EnrolResponse HubServer::Impl::enrol(const EnrolRequest& request) { return members_->enrol(*enroller_, request); }

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
  IslandConnected event{std::move(entry), *hello};
  take_proof(*hello, event);
  return event;
}

// Records count when this run's hub signed them, whoever brings them.
void HubServer::Impl::take_proof(const IslandHello& hello, IslandConnected& event) const {
  if (hello.epoch) {
    const Status proven = verify_epoch(identity_, *hello.epoch);
    if (proven.ok()) event.proven_epoch = hello.epoch->epoch;
    if (!proven.ok()) spdlog::warn("mesh island={} error=\"{}\"", event.entry.id.value, proven.error().message);
  }
  if (!hello.last_commit) return;
  const HubCommit& commit = hello.last_commit->commit;
  if (const Status proven = verify_commit(identity_, hello.last_commit->hub_certificate, commit); !proven.ok()) {
    spdlog::warn("mesh island={} error=\"{}\"", event.entry.id.value, proven.error().message);
    return;
  }
  event.proven_commit = commit;
  event.proven_epoch = std::max(event.proven_epoch, commit.epoch);
}

asio::awaitable<void> HubServer::Impl::close_after_silence(std::weak_ptr<IslandLink> link,
                                                           std::shared_ptr<bool> greeted) {
  asio::steady_timer timer(io_, kHelloTimeout);
  co_await timer.async_wait(kAwait);
  if (const auto alive = link.lock(); alive && !*greeted) alive->cut();
}

// Until the connection ends. What it throws ends it alone.
asio::awaitable<void> HubServer::Impl::serve_island(std::shared_ptr<IslandLink> link) {
  try {
    const bool entered = co_await greet(link);
    if (entered) co_await hear(link);
  } catch (...) {
    spdlog::error("mesh island={} failed=\"{}\"", link->island().id.value, what_of(std::current_exception()));
    link->cut();
  }
  ungreeted_.erase(link);
  forget(link);
}

// Asked anew when it enters: the connection may be older than the island's removal.
bool HubServer::Impl::is_still_member(IslandLink& link) {
  const Result<bool> member = members_->is_member(link.island());
  if (!member.ok()) {
    link.cut();  // it comes again
  } else if (!*member) {
    link.dismiss(ErrorCode::kPermissionDenied, kRemoved);
  }
  return member.ok() && *member;
}

// True when it has said a hello with which it may enter; from then on it takes part.
asio::awaitable<bool> HubServer::Impl::greet(std::shared_ptr<IslandLink> link) {
  const IslandId id = link->island().id;
  const auto greeted = std::make_shared<bool>(false);
  ungreeted_.insert(link);
  spawn(io_, close_after_silence(link, greeted), [weak = std::weak_ptr(link)](const std::string&) {
    if (const auto alive = weak.lock()) alive->cut();
  });
  const Result<std::string> first = co_await link->read();
  if (!first.ok()) co_return false;
  *greeted = true;
  ungreeted_.erase(link);
  const bool member = is_still_member(*link);
  if (!member) co_return false;
  const Result<IslandConnected> connected = read_hello(*link, *first);
  if (!connected.ok()) {
    link->dismiss(connected.error().code, connected.error().message);
    co_return false;
  }
  if (const auto old = links_.find(id); old != links_.end()) old->second->cut();
  links_[id] = link;
  remember_host(id, link->host());
  step(*connected);
  co_return true;
}

void HubServer::Impl::remember_host(const IslandId& island, const std::string& host) {
  std::string& known = hosts_[island];
  hosts_changed_ = hosts_changed_ || known != host;
  known = host;
}

// Not with each connection, for members may come and go as fast as they like. What cannot be saved now is worth no
// stop.
void HubServer::Impl::save_hosts() {
  if (!hosts_changed_ || (hosts_saved_ != Clock::time_point{} && Clock::now() - hosts_saved_ < kHostsPace)) return;
  hosts_saved_ = Clock::now();
  const Status saved = store_->save_hosts(hosts_);
  hosts_changed_ = !saved.ok();
  if (!saved.ok()) spdlog::warn("hub hosts error=\"{}\"", saved.error().message);
}

asio::awaitable<void> HubServer::Impl::hear(std::shared_ptr<IslandLink> link) {
  const IslandId id = link->island().id;
  for (;;) {
    const Result<std::string> text = co_await link->read();
    if (!text.ok()) co_return;
    const auto current = links_.find(id);
    if (current == links_.end() || current->second != link) co_return;  // sent away, or replaced by a newer connection
    Result<IslandMessage> message = decode_island_message(*text);
    if (!message.ok()) {
      spdlog::warn("mesh island={} error=\"{}\"", id.value, message.error().message);
      link->dismiss(message.error().code, message.error().message);
      co_return;
    }
    step(IslandSaid{id, std::move(*message)});
  }
}

void HubServer::Impl::forget(const std::shared_ptr<IslandLink>& link) {
  const IslandId& id = link->island().id;
  const auto current = links_.find(id);
  if (current == links_.end() || current->second != link) return;
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
    // Who removes an island says so (send_away), but may have ended before it did.
    for (const IslandId& id : members_->newly_removed()) send_away_now(id);
    save_hosts();
    step(Tick{});
  }
}

std::string HubServer::Impl::sign(const HubCommit& commit) const {
  const Result<std::string> signature = sign_commit(identity_, commit);
  return signature.ok() ? *signature : std::string();
}

Result<SignedEpoch> HubServer::Impl::sign_epoch(std::uint64_t epoch) const {
  const std::string record = epoch_record(run_.run_id, epoch);
  ATOLL_ASSIGN_OR_RETURN(const Bytes signature, sign_message(identity_, as_bytes(record)));
  return SignedEpoch{epoch, base64url_encode(signature), identity_.certificate_pem};
}

// Any thread but the hub's own.
Status HubServer::Impl::roll_back(OuterStep to, const std::string& reason) {
  const auto done = std::make_shared<std::promise<Status>>();
  std::future<Status> outcome = done->get_future();
  asio::post(io_, [this, done, to, reason] { done->set_value(roll_back_now(to, reason, /*automatic=*/false)); });
  if (outcome.wait_for(kRollbackTimeout) == std::future_status::ready) return outcome.get();
  return Error{ErrorCode::kTimeout, "the hub is busy; whether it goes back is told by: atoll hub status"};
}

Status HubServer::Impl::roll_back_now(OuterStep to, const std::string& reason, bool automatic) {
  ATOLL_RETURN_IF_ERROR(health());
  if (to > coordinator_->committed()) {
    return Error{ErrorCode::kInvalidArgument, fmt::format("the run has committed {} rounds; it cannot go back to {}",
                                                          coordinator_->committed().value, to.value)};
  }
  RollBack event{to, {}, 0, {}, reason, automatic};
  ATOLL_ASSIGN_OR_RETURN(event.state_hash, store_->state_hash(to));
  ATOLL_ASSIGN_OR_RETURN(event.epoch, store_->begin_epoch(unix_milliseconds_now()));
  ATOLL_ASSIGN_OR_RETURN(event.leases, store_->leases_since(to));
  ATOLL_ASSIGN_OR_RETURN(epoch_, sign_epoch(event.epoch));
  step(event);
  return health();
}

// What is thrown in its midst leaves a state that is not whole, and things half said: a hub that starts again from
// its disk is whole.
void HubServer::Impl::step(const CoordinatorEvent& event) {
  if (!health().ok()) return;
  try {
    take(event);
  } catch (...) {
    stop_serving(Error{ErrorCode::kInternal, fmt::format("the hub's round was broken off: {}; start the hub again, it "
                                                         "goes on from what is on its disk",
                                                         what_of(std::current_exception()))});
  }
}

void HubServer::Impl::take(const CoordinatorEvent& event) {
  const auto now = round_time();
  for (const CoordinatorAction& action : coordinator_->next(event, now)) {
    const Status done = carry_out_in_the_end(action);
    if (!done.ok()) return stop_serving(done.error());  // what follows must not be said
  }
  HubState state = view_->build(*coordinator_, now);
  MutexLock lock(mutex_);
  state_ = std::move(state);
}

// The time of the round. That in which this thread stood still, for a disk or for a database that another process
// held, does not pass in it: nobody was heard meanwhile. Ticks come more often than heartbeats.
Clock::time_point HubServer::Impl::round_time() {
  const auto now = Clock::now();
  const auto since = now - std::exchange(last_step_, now);
  if (since > run_.heartbeat) stood_still_ += since;
  return now - stood_still_;
}

// Another process may hold the database: what is to be said waits for it, as long as that takes.
Status HubServer::Impl::carry_out_in_the_end(const CoordinatorAction& action) {
  Status done = carry_out(action);
  while (!done.ok() && done.error().code == ErrorCode::kTimeout && !stopping_) {
    spdlog::warn("hub waits error=\"{}\"", done.error().message);
    done = carry_out(action);
  }
  return done;
}

Status HubServer::Impl::carry_out(const CoordinatorAction& action) {
  if (const auto* send = std::get_if<SendTo>(&action)) {
    const auto link = links_.find(send->island);
    if (link == links_.end()) return ok_status();
    HubMessage message = send->message;
    if (auto* roster = std::get_if<HubRoster>(&message)) roster->removed = members_->last_removed();
    if (auto* welcome = std::get_if<HubWelcome>(&message)) welcome->epoch = epoch_;
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
  if (const auto* back = std::get_if<PersistRollback>(&action)) return store_->save(*back, unix_seconds_now());
  if (const auto* forth = std::get_if<PersistFastForward>(&action)) return store_->save(*forth);
  if (const auto* spoiled = std::get_if<PersistSpoiled>(&action)) return store_->save(*spoiled);
  if (const auto* want = std::get_if<WantRollback>(&action)) {
    asio::post(io_, [this, want = *want] {
      const Status done = roll_back_now(want.to, want.reason, /*automatic=*/true);
      if (done.ok()) return;
      spdlog::error("hub rollback={} error=\"{}\"", want.to.value, done.error().message);
      step(RollBackFailed{want.to});
    });
    return ok_status();
  }
  if (const auto* down = std::get_if<StepDown>(&action)) {
    // So that what it is started again with is newer, whatever this machine's clock says.
    ATOLL_RETURN_IF_ERROR(store_->know_epoch(down->epoch));
    return Error{
        ErrorCode::kPermissionDenied,
        fmt::format("another hub of this run was started after this one (epoch {}): two would commit different "
                    "rounds, so this one has stopped. Serve only one; to go on with this one, start it again",
                    down->epoch)};
  }
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
  if (!on_event_) return;
  try {
    on_event_(event.name, event.data);
  } catch (const std::exception& error) {  // who only listens breaks nothing
    spdlog::error("hub event={} listener_failed=\"{}\"", event.name, error.what());
  }
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
Status HubServer::roll_back(OuterStep to, const std::string& reason) { return impl_->roll_back(to, reason); }
Status HubServer::health() const { return impl_->health(); }

}  // namespace atl
