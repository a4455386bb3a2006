#include "app/agent/trainer_link.h"

#include <QTemporaryDir>
#include <QtTest>
#include <atomic>
#include <nlohmann/json.hpp>
#include <vector>

#include "net/base/mutex.h"
#include "net/control/control_server.h"
#include "tests/fakes/patience.h"

using namespace atl;

namespace {

// What a trainer is on its control socket.
class FakeTrainer final : public ControlService {
 public:
  FakeTrainer(const std::filesystem::path& socket, int pid) : pid_(pid) {
    auto server = ControlServer::start(socket, "atoll-trainer", *this);
    if (!server.ok()) qFatal("%s", server.error().message.c_str());
    server_ = std::move(*server);
  }
  bool is_slow(std::string_view) const override { return false; }
  Result<nlohmann::json> call(std::string_view, const nlohmann::json&) override { return state().to_json(); }
  void step() {
    ++steps_;
    server_->publish("step", state().to_json());
  }

 private:
  IslandState state() const {
    IslandState state;
    state.pid = pid_;
    state.inner_step = steps_;
    return state;
  }

  const int pid_;
  std::atomic<std::uint32_t> steps_ = 0;
  std::unique_ptr<ControlServer> server_;
};

}  // namespace

class TrainerLinkTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void init() {
    directory_ = std::make_unique<QTemporaryDir>();
    const MutexLock lock(mutex_);
    heard_.clear();
    kept_ = answers_ = 0;
  }

  void events_come_once_and_before_the_state_that_they_led_to() {
    FakeTrainer trainer(socket(), 7);
    for (int i = 0; i < 5; ++i) trainer.step();
    TrainerLink link(socket(), callbacks());
    QTRY_COMPARE(heard(), (std::vector{1, 2, 3, 4, 5}));
    QTRY_COMPARE(heard_before_the_first_answer(), 5);
    trainer.step();

    QTRY_COMPARE(heard(), (std::vector{1, 2, 3, 4, 5, 6}));
    QCOMPARE(kept(), 5);
  }

  // A step of a large model takes longer than a trainer may say nothing new.
  void a_part_of_a_step_is_progress() {
    IslandState before;
    before.state = IslandPhase::kTraining;
    before.passes = 20;
    IslandState after = before;
    QCOMPARE(progress_of(after), progress_of(before));

    after.passes = 21;

    QVERIFY(progress_of(after) != progress_of(before));
  }

  void a_line_that_was_lost_repeats_nothing() {
    auto trainer = std::make_unique<FakeTrainer>(socket(), 7);
    TrainerLink link(socket(), callbacks());
    QTRY_VERIFY(answers() > 0);
    trainer->step();
    trainer->step();
    QTRY_COMPARE(heard(), (std::vector{1, 2}));

    // The same process, on a new connection: it tells from the first on, but for what was heard.
    trainer.reset();
    trainer = std::make_unique<FakeTrainer>(socket(), 7);
    for (int i = 0; i < 3; ++i) trainer->step();

    QTRY_COMPARE(heard(), (std::vector{1, 2, 3}));
  }

  void another_trainer_is_heard_from_its_first_word() {
    auto trainer = std::make_unique<FakeTrainer>(socket(), 7);
    TrainerLink link(socket(), callbacks());
    trainer->step();
    QTRY_COMPARE(heard(), std::vector{1});

    trainer.reset();
    trainer = std::make_unique<FakeTrainer>(socket(), 8);
    trainer->step();
    trainer->step();

    QTRY_COMPARE(heard(), (std::vector{1, 1, 2}));
  }

 private:
  std::filesystem::path socket() const { return directory_->path().toStdString() + "/control.sock"; }
  TrainerLink::Callbacks callbacks() {
    return {.answered =
                [this](const IslandState&) {
                  MutexLock lock(mutex_);
                  if (answers_++ == 0) before_answer_ = static_cast<int>(heard_.size());
                },
            .event =
                [this](const HeardEvent& event) {
                  MutexLock lock(mutex_);
                  heard_.push_back(static_cast<int>(state_in(event.what)->island.inner_step));
                  kept_ += event.kept ? 1 : 0;
                }};
  }
  std::vector<int> heard() {
    const MutexLock lock(mutex_);
    return heard_;
  }
  int kept() {
    const MutexLock lock(mutex_);
    return kept_;
  }
  int answers() {
    const MutexLock lock(mutex_);
    return answers_;
  }
  int heard_before_the_first_answer() {
    const MutexLock lock(mutex_);
    return before_answer_;
  }

  std::unique_ptr<QTemporaryDir> directory_;
  Mutex mutex_;
  std::vector<int> heard_ ATOLL_GUARDED_BY(mutex_);
  int kept_ ATOLL_GUARDED_BY(mutex_) = 0;
  int answers_ ATOLL_GUARDED_BY(mutex_) = 0;
  int before_answer_ ATOLL_GUARDED_BY(mutex_) = -1;
};

QTEST_GUILESS_MAIN(TrainerLinkTest)
#include "trainer_link_test.moc"
