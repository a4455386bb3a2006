#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <future>
#include <thread>

#include "net/base/log_limit.h"
#include "net/base/mutex.h"
#include "net/base/unique_fd.h"
#include "net/check/run_needs.h"
#include "net/hub/advertised_hosts.h"
#include "net/hub/base_model.h"
#include "net/hub/hub.h"
#include "net/hub/hub_home.h"
#include "net/hub/hub_listener.h"
#include "net/hub/island_dialer.h"
#include "net/hub/island_hello.h"
#include "net/hub/island_sessions.h"
#include "net/hub/known_hosts.h"
#include "net/hub/member_roll.h"
#include "net/hub/round_service.h"
#include "net/mesh/spawn.h"

namespace atl {
namespace {

namespace asio = boost::asio;

constexpr std::chrono::milliseconds kGoodbyeTimeout{1'000};
constexpr std::chrono::milliseconds kLongestTick{250};
constexpr std::chrono::milliseconds kShortestTick{20};
constexpr std::chrono::seconds kDecisionTimeout{10};

std::vector<Address> reachable_at(const HubServeOptions& options, std::uint16_t port) {
  std::vector<Address> addresses = options.advertised;
  if (addresses.empty()) addresses.push_back(options.listen);
  for (Address& address : addresses) {
    if (address.port == 0) address.port = port;
  }
  return addresses;
}

}  // namespace

class HubServer::Impl final : public HubGate, private SessionGate, private RoundOutlet {
 public:
  explicit Impl(OnEvent on_event) : on_event_(std::move(on_event)) {}
  ~Impl() override;

  Status start(const HubServeOptions& options);
  std::uint16_t port() const { return listener_->port(); }
  HubState state() const { return rounds_->state(); }
  Status health() const {
    MutexLock lock(mutex_);
    return health_;
  }
  Status roll_back(OuterStep to, const std::string& reason, bool force);
  Result<DecidedDecay> decide_decay(const DecayWish& wish);
  Status cancel_decay();
  Result<MixtureWish> decide_mixture(const MixtureWish& wish);
  Status cancel_mixture();
  void send_away(const std::string& island) {
    asio::post(io_, [this, id = IslandId{island}] { send_away_now(id); });
  }

 private:
  // HubGate, on the hub's thread
  Result<std::optional<EnrolledIsland>> admit(const PeerCertificate& certificate) override;
  Result<std::string> renew(const EnrolledIsland& island, const std::string& certificate_pem) override;
  Result<std::string> contributors() override;
  std::string past() override { return rounds_->past(); }
  EnrolResponse enrol(const EnrolRequest& request) override;
  AboutResponse about(const AboutRequest& request) override;
  asio::awaitable<void> serve_island(std::shared_ptr<IslandLink> link) override {
    return sessions_.serve(std::move(link));
  }
  void stop_serving(const Error& error) override;  // also RoundOutlet's

  // SessionGate
  Result<bool> is_member(const EnrolledIsland& island) override { return members_->is_member(island); }
  Result<IslandConnected> read_hello(const IslandLink& link, const std::string& text) override;
  asio::awaitable<void> find_place(std::shared_ptr<IslandLink> link, IslandConnected& event) override;
  void step(const CoordinatorEvent& event) override { rounds_->step(event); }

  // RoundOutlet
  void send(const IslandId& island, HubMessage message) override;
  void close(const IslandId& island) override { sessions_.close(island); }
  void dial(const IslandId& island, const Address& address) override;
  void post(std::function<void()> later) override { asio::post(io_, std::move(later)); }
  bool is_serving() const override { return health().ok(); }
  bool is_ending() const override { return stopping_; }

  Status open_home(const HubServeOptions& options);
  Status open_port(const HubServeOptions& options);
  Status renew_own_certificate();
  void run();
  Status roll_back_now(OuterStep to, const std::string& reason, bool force);
  template <class Answer, class Act>
  Answer on_own_thread(Act act);
  asio::awaitable<void> tick();
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
  std::optional<KnownHosts> hosts_;
  std::optional<Enroller> enroller_;
  std::optional<DataFiles> data_;
  std::optional<BaseModelFiles> base_model_;
  std::unique_ptr<RoundService> rounds_;
  LogLimit renewals_;  // a line an island now and then, however often it asks
  mutable Mutex mutex_;
  Status health_ ATOLL_GUARDED_BY(mutex_);
  std::atomic<bool> stopping_{false};

  asio::io_context io_{1};
  IslandSessions sessions_{io_, *this};  // its coroutines are in io_
  std::optional<TlsContext> tls_;
  std::unique_ptr<CheckEndpoints> checks_;
  std::unique_ptr<HubListener> listener_;
  std::jthread thread_;
  std::optional<AdvertisedHosts> advertised_;
  std::unique_ptr<IslandDialer> dialer_;  // last: its threads post to io_
};

// ---- starting and stopping

Status HubServer::Impl::start(const HubServeOptions& options) {
  ATOLL_RETURN_IF_ERROR(open_home(options));
  ATOLL_ASSIGN_OR_RETURN(rounds_, RoundService::open(run_, identity_, *store_, *this, on_event_));
  ATOLL_RETURN_IF_ERROR(open_port(options));
  const std::vector<Address> addresses = reachable_at(options, listener_->port());
  ATOLL_RETURN_IF_ERROR(store_->save_addresses(addresses));
  rounds_->begin(addresses);
  enroller_.emplace(
      *authority_, store_->enrolments(), addresses, [] { return std::chrono::system_clock::now(); },
      certificate_lifetime_);
  const auto on_dialled = [this](const IslandId& island, const Address& address, bool answered) {
    asio::post(io_, [this, event = IslandDialled{island, address, answered}] { step(event); });
  };
  ATOLL_ASSIGN_OR_RETURN(dialer_, IslandDialer::start(identity_, on_dialled));
  advertised_.emplace(io_, *dialer_);
  spawn(io_, tick(), [this](const std::string& what) {
    stop_serving(Error{ErrorCode::kInternal, fmt::format("the hub's clock ended: {}; start it again", what)});
  });
  thread_ = std::jthread([this] { run(); });
  spdlog::info("hub run={} port={} round={}", run_.run_id, listener_->port(), rounds_->coordinator().committed().value);
  return ok_status();
}

Status HubServer::Impl::open_home(const HubServeOptions& options) {
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
  ATOLL_ASSIGN_OR_RETURN(ServedFiles served, served_files(run_, file, home_));
  if (const std::string what = lacking(served); !what.empty()) spdlog::warn("hub data error=\"{}\"", what);
  data_.emplace(std::move(served));
  base_model_.emplace(home_);
  if (run_.begins_at_hub()) {
    const auto kept = kept_base_model(home_, run_);
    if (!kept.ok()) spdlog::warn("hub base_model error=\"{}\"", kept.error().message);
  }
  about_run_ = {run_.run_id, run_.name, file.operator_name, describe_model(run_)};
  if (const auto needs = needs_of(run_); needs.ok()) {
    about_run_.parameters = needs->parameters;
    about_run_.needs = to_json(*needs).dump();
    if (about_run_.needs.size() > kMaxRunNeeds) about_run_.needs.clear();
  }
  ATOLL_ASSIGN_OR_RETURN(store_, HubStore::open(home_.database()));
  ATOLL_ASSIGN_OR_RETURN(MemberRoll members,
                         MemberRoll::open(*store_, [this](const Error& error) { stop_serving(error); }));
  members_.emplace(std::move(members));
  ATOLL_ASSIGN_OR_RETURN(KnownHosts hosts, KnownHosts::open(*store_));
  hosts_.emplace(std::move(hosts));
  return ok_status();
}

Status HubServer::Impl::open_port(const HubServeOptions& options) {
  const auto about_checks = [this] { return check_about(run_, rounds_->coordinator(), state()); };
  ATOLL_ASSIGN_OR_RETURN(checks_, CheckEndpoints::start(io_, identity_, about_checks));
  HubPortLimits limits;
  limits.trusted_proxies = options.trusted_proxies;
  limits.joins_at_once = options.joins_at_once;
  listener_ = std::make_unique<HubListener>(io_, *tls_, *data_, *base_model_, *checks_, *this, limits);
  listener_->expect(hosts_->all());
  return listener_->listen(options.listen);
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
    sessions_.close_all();
  });
  const Deadline deadline = Deadline::after(kGoodbyeTimeout);
  std::atomic<bool> closed{false};
  while (!closed && !deadline.expired()) {
    asio::post(io_, [this, &closed] { closed = sessions_.empty(); });
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
  sessions_.cut_all();
}

// The roster that follows tells the others to close what they have open with it.
void HubServer::Impl::send_away_now(const IslandId& id) {
  members_->note_removed(id);
  listener_->cut(id);
  sessions_.send_away(id);
  hosts_->forget(id);
  advertised_->forget(id);
  step(IslandRemoved{id, IslandSessions::kRemoved});
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
                           authority_->validity(std::chrono::system_clock::now(), certificate_lifetime_));
}

Result<std::string> HubServer::Impl::contributors() {
  ATOLL_ASSIGN_OR_RETURN(const std::vector<Contributor> found, store_->contributors());
  return encode(found);
}

// Its own certificate is made anew as well, when a hub that holds an old one starts: islands know it by its
// authority.
Status HubServer::Impl::renew_own_certificate() {
  const auto now = std::chrono::system_clock::now();
  ATOLL_RETURN_IF_ERROR(authority_->check_time(now));
  if (!is_due_for_renewal(identity_, now, kHubCertificateLifetime)) return ok_status();
  if (is_not_yet_valid(identity_, now)) {
    spdlog::warn(
        "hub certificate=\"not valid yet: this machine's clock was ahead when it was made, or is behind now\"");
  }
  ATOLL_ASSIGN_OR_RETURN(identity_, authority_->make_hub_identity(authority_->validity(now, kHubCertificateLifetime)));
  ATOLL_RETURN_IF_ERROR(save_identity(home_.identity(), identity_));
  spdlog::info("hub certificate=renewed");
  return ok_status();
}

EnrolResponse HubServer::Impl::enrol(const EnrolRequest& request) { return members_->enrol(*enroller_, request); }

AboutResponse HubServer::Impl::about(const AboutRequest& request) {
  if (request.run_id == run_.run_id) return about_run_;
  return Error{ErrorCode::kInviteOtherRun,
               fmt::format("this invite is for another run; the hub at this address leads run {}", run_.run_id)};
}

Result<IslandConnected> HubServer::Impl::read_hello(const IslandLink& link, const std::string& text) {
  Result<IslandConnected> connected = atl::read_hello(link.island(), link.host(), text, policy_, identity_);
  if (!connected.ok()) return connected;
  hosts_->remember(link.island().id, link.host());
  members_->note_credited(link.island().id, connected->hello.credited);
  members_->note_name(link.island(), connected->entry.display_name);
  return connected;
}

asio::awaitable<void> HubServer::Impl::find_place(std::shared_ptr<IslandLink> link, IslandConnected& event) {
  const std::string& named = event.hello.advertised_host;
  if (named.empty() || named == link->host()) {
    advertised_->forget(link->island().id);
    co_return;
  }
  const Address address{named, event.hello.listen_port};
  const std::optional<Address> proven = co_await advertised_->prove(link->island().id, address, link->host());
  if (proven) event.entry.address = *proven;
}

// ---- the rounds

// What the island named is not its own: that others could dial where it comes from is not what it says.
void HubServer::Impl::dial(const IslandId& island, const Address& address) {
  if (!advertised_->failed(island)) return dialer_->dial(island, address);
  asio::post(io_, [this, event = IslandDialled{island, address, false}] { step(event); });
}

void HubServer::Impl::send(const IslandId& island, HubMessage message) {
  if (auto* roster = std::get_if<HubRoster>(&message)) roster->removed = members_->last_removed();
  sessions_.send(island, encode(message));
}

asio::awaitable<void> HubServer::Impl::tick() {
  const auto period = std::clamp(run_.heartbeat / 4, kShortestTick, kLongestTick);
  asio::steady_timer timer(io_);
  while (health().ok()) {
    timer.expires_after(period);
    co_await timer.async_wait(kAwait);
    // Who removes an island says so (send_away), but may have ended before it did.
    for (const IslandId& id : members_->newly_removed()) send_away_now(id);
    hosts_->save_now_and_then();
    step(Tick{});
  }
}

// Any thread but the hub's own.
template <class Answer, class Act>
Answer HubServer::Impl::on_own_thread(Act act) {
  const auto done = std::make_shared<std::promise<Answer>>();
  std::future<Answer> outcome = done->get_future();
  asio::post(io_, [done, act] { done->set_value(act()); });
  if (outcome.wait_for(kDecisionTimeout) == std::future_status::ready) return outcome.get();
  return Error{ErrorCode::kTimeout, "the hub is busy; what becomes of it is told by: atoll hub status"};
}

Status HubServer::Impl::roll_back(OuterStep to, const std::string& reason, bool force) {
  return on_own_thread<Status>([this, to, reason, force] { return roll_back_now(to, reason, force); });
}

Result<DecidedDecay> HubServer::Impl::decide_decay(const DecayWish& wish) {
  return on_own_thread<Result<DecidedDecay>>([this, wish]() -> Result<DecidedDecay> {
    ATOLL_RETURN_IF_ERROR(health());
    auto decided = rounds_->decide_decay(wish);
    ATOLL_RETURN_IF_ERROR(health());
    return decided;
  });
}

Status HubServer::Impl::cancel_decay() {
  return on_own_thread<Status>([this]() -> Status {
    ATOLL_RETURN_IF_ERROR(health());
    ATOLL_RETURN_IF_ERROR(rounds_->cancel_decay());
    return health();
  });
}

Result<MixtureWish> HubServer::Impl::decide_mixture(const MixtureWish& wish) {
  return on_own_thread<Result<MixtureWish>>([this, wish]() -> Result<MixtureWish> {
    ATOLL_RETURN_IF_ERROR(health());
    auto decided = rounds_->decide_mixture(wish);
    ATOLL_RETURN_IF_ERROR(health());
    return decided;
  });
}

Status HubServer::Impl::cancel_mixture() {
  return on_own_thread<Status>([this]() -> Status {
    ATOLL_RETURN_IF_ERROR(health());
    ATOLL_RETURN_IF_ERROR(rounds_->cancel_mixture());
    return health();
  });
}

Status HubServer::Impl::roll_back_now(OuterStep to, const std::string& reason, bool force) {
  ATOLL_RETURN_IF_ERROR(health());
  if (!force) ATOLL_RETURN_IF_ERROR(rounds_->can_go_on_from(to));
  ATOLL_RETURN_IF_ERROR(rounds_->roll_back(to, reason, /*automatic=*/false));
  return health();
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
Status HubServer::roll_back(OuterStep to, const std::string& reason, bool force) {
  return impl_->roll_back(to, reason, force);
}
Result<DecidedDecay> HubServer::decide_decay(const DecayWish& wish) { return impl_->decide_decay(wish); }
Status HubServer::cancel_decay() { return impl_->cancel_decay(); }
Result<MixtureWish> HubServer::decide_mixture(const MixtureWish& wish) { return impl_->decide_mixture(wish); }
Status HubServer::cancel_mixture() { return impl_->cancel_mixture(); }
Status HubServer::health() const { return impl_->health(); }

}  // namespace atl
