// Starting the hub of a run of one's own, with programs that a test writes: nothing waits for them.
#include "app/core/hub_model.h"

#include <sys/stat.h>

#include <QSemaphore>
#include <QTemporaryDir>
#include <QThread>
#include <QThreadPool>
#include <QtTest>
#include <fstream>

#include "tests/app/core/fake_agent.h"

using namespace atl;
using namespace atl::test;

namespace {

constexpr int kLimitMs = 30'000;  // for anything; a hang, not a slow machine

// Lets nothing start elsewhere while it lives: what waits for a start then waits for long.
class HeldUpPool {
 public:
  HeldUpPool() {
    pool().setMaxThreadCount(1);
    pool().start([this] { released_.acquire(); });
  }
  ~HeldUpPool() {
    released_.release();
    pool().waitForDone();
    pool().setMaxThreadCount(QThread::idealThreadCount());
  }

 private:
  static QThreadPool& pool() { return *QThreadPool::globalInstance(); }

  QSemaphore released_;
};

}  // namespace

class HubModelTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void init() {
    directory_ = std::make_unique<QTemporaryDir>();
    agent_ = std::make_unique<FakeAgent>();
    agent_->refuse({ErrorCode::kNotRunning, "no hub"});
    std::ofstream(path("run.json")) << "{}";
    model_ = std::make_unique<HubModel>(HubHome{directory_->path().toStdString()}, agent_->open(), commands_.run());
    model_->start();
  }
  void cleanup() { qunsetenv("ATOLL_PROGRAM"); }

  void a_hub_is_started_without_waiting_for_it();
  void a_hub_is_started_even_when_its_window_goes_meanwhile();
  void a_program_that_cannot_be_run_says_so();
  void a_hub_that_ends_at_once_says_why();
  void a_hub_that_is_found_meanwhile_is_as_good();

 private:
  std::string path(const char* name) const { return directory_->filePath(name).toStdString(); }
  bool was_started() const { return QFile::exists(directory_->filePath("started")); }
  // Says that it was started, then does `rest`.
  void write_program(const std::string& rest) const {
    std::ofstream(path("atoll")) << "#!/bin/sh\necho \"$*\" > " << path("started") << "\n" << rest << "\n";
    ::chmod(path("atoll").c_str(), 0755);
    qputenv("ATOLL_PROGRAM", QByteArray::fromStdString(path("atoll")));
  }

  std::unique_ptr<QTemporaryDir> directory_;
  std::unique_ptr<FakeAgent> agent_;
  FakeCommands commands_;
  std::unique_ptr<HubModel> model_;
};

void HubModelTest::a_hub_is_started_without_waiting_for_it() {
  write_program("exec sleep 20");
  {
    const HeldUpPool held_up;

    model_->serve();  // returns while nothing can be started

    QVERIFY(model_->busy() && !model_->doing().isEmpty());
    QTest::qWait(50);
    QVERIFY(model_->busy() && !was_started());
  }
  QTRY_VERIFY_WITH_TIMEOUT(was_started(), kLimitMs);
  QVERIFY(model_->busy());
  agent_->welcome();
  QTRY_VERIFY_WITH_TIMEOUT(!model_->busy(), kLimitMs);
  QVERIFY(model_->serving() && model_->problem().empty());
}

void HubModelTest::a_hub_is_started_even_when_its_window_goes_meanwhile() {
  write_program("exec sleep 1");
  {
    const HeldUpPool held_up;
    model_->serve();

    model_.reset();
  }

  QTRY_VERIFY_WITH_TIMEOUT(was_started(), kLimitMs);
  QTest::qWait(20);  // what came of it finds nobody
}

void HubModelTest::a_program_that_cannot_be_run_says_so() {
  qputenv("ATOLL_PROGRAM", "/nowhere/atoll");
  const QThread* told_on = nullptr;
  connect(
      model_.get(), &HubModel::changed, model_.get(), [&] { told_on = QThread::currentThread(); },
      Qt::DirectConnection);

  model_->serve();
  QVERIFY(model_->busy());  // never from within the call

  QTRY_VERIFY_WITH_TIMEOUT(!model_->busy(), kLimitMs);
  QVERIFY2(model_->problem().find("/nowhere/atoll cannot be run") != std::string::npos, model_->problem().c_str());
  QCOMPARE(told_on, QThread::currentThread());
}

void HubModelTest::a_hub_that_ends_at_once_says_why() {
  write_program("echo 'atoll: port 47000 is taken' >&2; exit 1");

  model_->serve();

  QTRY_VERIFY_WITH_TIMEOUT(!model_->busy(), kLimitMs);
  QCOMPARE(model_->problem(), std::string("The hub does not serve: port 47000 is taken"));
}

void HubModelTest::a_hub_that_is_found_meanwhile_is_as_good() {
  qputenv("ATOLL_PROGRAM", "/nowhere/atoll");
  {
    const HeldUpPool held_up;
    model_->serve();
    agent_->welcome();
    QTRY_VERIFY_WITH_TIMEOUT(model_->serving(), kLimitMs);
    QVERIFY(!model_->busy());
  }
  QTest::qWait(20);  // the start fails

  QVERIFY2(model_->problem().empty(), model_->problem().c_str());
}

QTEST_GUILESS_MAIN(HubModelTest)
#include "hub_model_test.moc"
