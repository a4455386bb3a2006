#include "app/agent/trainer_news.h"

#include <QTemporaryDir>
#include <QtTest>
#include <nlohmann/json.hpp>
#include <vector>

#include "app/agent/agent_board.h"
#include "app/agent/agent_history.h"
#include "app/agent/contribution_book.h"
#include "net/base/mutex.h"
#include "net/control/control_server.h"
#include "tests/fakes/patience.h"

using namespace atl;

namespace {

class JoiningTrainer final : public ControlService {
 public:
  explicit JoiningTrainer(const std::filesystem::path& socket) {
    auto server = ControlServer::start(socket, "atoll-trainer", *this);
    if (!server.ok()) qFatal("%s", server.error().message.c_str());
    server_ = std::move(*server);
  }
  bool is_slow(std::string_view) const override { return false; }
  Result<nlohmann::json> call(std::string_view, const nlohmann::json&) override { return state().to_json(); }
  void say() { server_->publish("state.changed", state().to_json()); }

 private:
  static IslandState state() {
    IslandState state;
    state.pid = 7;
    state.state = IslandPhase::kJoining;
    return state;
  }

  std::unique_ptr<ControlServer> server_;
};

class Phases {
 public:
  void add(const ControlEvent& event) {
    const MutexLock lock(mutex_);
    if (const NodeState* state = state_in(event)) phases_.push_back(state->island.state);
  }
  std::vector<IslandPhase> all() const {
    const MutexLock lock(mutex_);
    return phases_;
  }

 private:
  mutable Mutex mutex_;
  std::vector<IslandPhase> phases_ ATOLL_GUARDED_BY(mutex_);
};

}  // namespace

class TrainerNewsTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  // Between the trainer's start and the agent's next look at itself everybody else is told that nothing is joined yet.
  void who_follows_a_joining_hears_the_trainers_own_words() {
    const QTemporaryDir directory;
    const std::filesystem::path root = directory.path().toStdString();
    ContributionBook contributions(root / "contributions.json");
    AgentBoard board(IslandHome(root), contributions);
    AgentHistory history(root / "history", {});
    Phases said, published;
    TrainerNews news(board, history, contributions,
                     {.answered = [](const TrainerAnswered&) {},
                      .said = [&](const ControlEvent& event) { said.add(event); },
                      .publish = [&](const ControlEvent& event) { published.add(event); },
                      .on_event = {}});
    news.follow_joining(true);
    JoiningTrainer trainer(root / "control.sock");

    news.listen(root / "control.sock");
    QTRY_VERIFY(!said.all().empty());  // it answered
    trainer.say();

    QTRY_COMPARE(published.all(), std::vector{IslandPhase::kUnjoined});
    QTRY_VERIFY(said.all().size() >= 2);
    for (const IslandPhase phase : said.all()) QCOMPARE(phase, IslandPhase::kJoining);
  }
};

QTEST_GUILESS_MAIN(TrainerNewsTest)
#include "trainer_news_test.moc"
