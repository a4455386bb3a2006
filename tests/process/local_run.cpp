#include "tests/process/local_run.h"

#include <QtCore/QProcess>
#include <QtCore/QThread>

#include "net/enrol/client.h"
#include "net/hub/hub_store.h"

namespace atl::test {
namespace {

std::chrono::sys_seconds now() {
  return std::chrono::time_point_cast<std::chrono::seconds>(std::chrono::system_clock::now());
}

}  // namespace

LocalRun::LocalRun(RunConfig run, const std::string& initial_hash) {
  make_dataset(directory() / "text.txt", dataset());
  run.name = "test run";
  config_ = require(hub_init({.directory = directory() / "hub", .data = {{dataset()}}, .run = std::move(run)}));
  if (!initial_hash.empty()) {
    const auto store = require(HubStore::open(HubHome{directory() / "hub"}.database()));
    require(store->save(PersistStateHash{OuterStep{0}, initial_hash, std::nullopt}));
  }
  hub_ =
      require(HubServer::start({.directory = directory() / "hub", .listen = {"127.0.0.1", 0}, .advertised = {}}, {}));
}

LocalRun::~LocalRun() = default;

Address LocalRun::hub_address() const { return {"127.0.0.1", hub_->port()}; }

bool LocalRun::wait_until(const std::function<bool(const HubState&)>& condition, std::chrono::seconds limit) const {
  const Deadline deadline = Deadline::after(limit);
  while (!condition(state())) {
    if (deadline.expired()) return false;
    QThread::msleep(20);
  }
  return true;
}

Invite LocalRun::invite(std::uint32_t uses, std::chrono::seconds valid_for) const {
  const InviteReport report =
      require(create_invite(directory() / "hub", {.addresses = {hub_address()}, .uses = uses, .valid_for = valid_for}));
  return require(decode_invite(report.text, now()));
}

Identity LocalRun::enrol(const std::string& name) const {
  return require(atl::enrol(invite(), name, Deadline::after(std::chrono::seconds(60)))).identity;
}

void LocalRun::remove(const std::string& island) const {
  require(remove_enrolled_island(directory() / "hub", island));
  hub_->send_away(island);
}

IslandHome LocalRun::make_home(const std::string& name, std::uint16_t port) const {
  return make_island_home({.directory = directory() / "islands",
                           .dataset = dataset(),
                           .invite = invite(),
                           .display_name = name,
                           .bind = {"127.0.0.1", port}},
                          config_);
}

std::unique_ptr<QProcess> LocalRun::start_island(const std::string& name, std::uint16_t port) const {
  return start_trainer(make_home(name, port));
}

}  // namespace atl::test
