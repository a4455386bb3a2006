// What a real agent says of a small run, recorded by the real atoll-gui and shown again in a window.
#include <QProcess>
#include <QtTest>

#include "app/core/nodes.h"
#include "app/gui/look/format.h"
#include "app/gui/look/theme.h"
#include "app/gui/main_window.h"
#include "app/gui/node_view.h"
#include "app/gui/parts/stat_tile.h"
#include "tests/fakes/patience.h"
#include "tests/process/agent_service.h"
#include "tests/process/local_run.h"

using namespace atl;
using namespace atl::test;

namespace {

constexpr double kSpeed = 1;

std::unique_ptr<QProcess> record(const AgentHome& home, const QString& file) {
  auto program = std::make_unique<QProcess>();
  QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
  environment.insert("QT_QPA_PLATFORM", "offscreen");
  program->setProcessEnvironment(environment);
  program->setProcessChannelMode(QProcess::ForwardedChannels);
  program->start(ATOLL_BIN_DIR "/atoll-gui",
                 {"--home", QString::fromStdString(home.island.directory.string()), "--record", file});
  program->waitForStarted();
  return program;
}

}  // namespace

class GuiRecordingTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void what_a_real_agent_said_is_shown_again() {
    LocalRun run(small_run(2));
    const auto peer = run.start_island("reef");
    AgentService service(run.make_home("recorded"));
    const QString file = QString::fromStdString((run.directory() / "recording.jsonl").string());
    QVERIFY(service.wait_for_training());
    const auto is_written = [&] {  // the history, every few seconds
      const auto peers = service.call("peers.list"), rounds = service.call("rounds.list");
      return peers.ok() && rounds.ok() && (*peers)["peers"].size() == 1 && (*rounds)["rounds"].size() >= 3;
    };
    QVERIFY(wait_for(is_written));

    const auto program = record(service.home(), file);
    // What was before it looked comes at once; then some rounds as they are.
    const auto has_looked = [&] {
      QFile recording(file);
      return recording.open(QIODevice::ReadOnly) && recording.readAll().contains("checkpoints.list");
    };
    QVERIFY(wait_for(has_looked));
    QVERIFY(service.wait_for_rounds(4));
    QCOMPARE(program->state(), QProcess::Running);
    program->terminate();
    QVERIFY(program->waitForFinished(120'000));
    service.end();
    peer->terminate();
    peer->waitForFinished(120'000);

    QCOMPARE(QFile::permissions(file) & 0x0077, QFileDevice::Permissions());
    Theme theme(*qApp);
    Nodes nodes{QString()};
    Node& node = nodes.add(RecordedNode{file, kSpeed});
    (void)node.history().series("loss_nats", SeriesAxis::kTime);  // from the first event on
    MainWindow window(nodes, theme);
    window.show();
    QTRY_COMPARE_WITH_TIMEOUT(node.link().state(), LinkState::kEnded, 120'000);
    QVERIFY(node.state());
    QCOMPARE(node.state()->island.run_name, std::string("test run"));
    QVERIFY(node.state()->island.accepted_round && node.state()->island.loss_nats > 0);
    QVERIFY(node.rounds().rowCount() >= 3 && node.islands().rowCount() == 1);
    const std::size_t points = node.history().series("loss_nats", SeriesAxis::kTime).size();
    QVERIFY2(points >= 3 * 6, qPrintable(QString("%1 points, %2 rounds").arg(points).arg(node.rounds().rowCount())));
    const auto* loss = window.view()->findChild<StatTile*>("loss");
    QVERIFY(loss != nullptr);
    QTRY_COMPARE(loss->value(), text::loss(node.state()->island.loss_nats));
  }
};

QTEST_MAIN(GuiRecordingTest)
#include "gui_recording_test.moc"
