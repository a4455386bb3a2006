// atoll train as people start it, and the commands that use its model: their output is what resources/schemas says.
#include <signal.h>

#include <QProcess>
#include <QRegularExpression>
#include <QTemporaryDir>
#include <QtTest>
#include <fstream>

#include "net/base/exit_code.h"
#include "tests/app/schema_defects.h"

using namespace atl;
using atl::test::defects;

namespace {

constexpr int kLimitMilliseconds = 240'000;  // for anything; a hang, not a slow machine

}  // namespace

class TrainTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase();
  void a_run_alone_ends_after_its_rounds();
  void a_finished_run_goes_on_with_more_rounds();
  void another_run_begins_with_what_a_run_alone_came_to();
  void what_cannot_change_of_a_run_is_named();
  void an_interrupted_run_goes_on();
  void its_model_is_used();
  void its_loss_is_told_by_source();
  void what_cannot_be_trained_is_said_data();
  void what_cannot_be_trained_is_said();

 private:
  struct Outcome {
    int exit_code = -1;
    QByteArray out, err;
  };
  QString path(const QString& name) const { return directory_.filePath(name); }
  std::unique_ptr<QProcess> start(const QStringList& arguments) const {
    auto process = std::make_unique<QProcess>();
    process->start(ATOLL_BIN_DIR "/atoll", arguments);
    return process;
  }
  Outcome run(const QStringList& arguments) const {
    const auto process = start(arguments);
    if (!process->waitForFinished(kLimitMilliseconds)) return {};
    return {process->exitCode(), process->readAllStandardOutput(), process->readAllStandardError()};
  }
  // Empty: it fits.
  std::string defects_of(const char* schema, const QStringList& arguments) const {
    const Outcome outcome = run(arguments);
    const auto json = nlohmann::json::parse(outcome.out.toStdString(), nullptr, false);
    return json.is_discarded() ? (outcome.out + outcome.err).toStdString() : defects(schema, json);
  }
  QStringList small() const {
    return {"--data", path("data"), "--inner-steps", "2", "--batch", "2", "--sequence-length", "64", "--threads", "1"};
  }

  QTemporaryDir directory_;
};

void TrainTest::initTestCase() {
  std::ofstream text(path("book.txt").toStdString());
  for (int i = 0; i < 20'000; ++i) text << "Line " << i << " of a book about islands in a ring.\n";
  text.close();
  QCOMPARE(run({"data", "prepare", path("book.txt"), "--output", path("data")}).exit_code, 0);
}

void TrainTest::a_run_alone_ends_after_its_rounds() {
  const Outcome trained =
      run(QStringList{"train", "--dir", path("run"), "--rounds", "2", "--validate-every", "1"} + small());

  QVERIFY2(trained.exit_code == 0, trained.err + trained.out);
  QVERIFY(trained.out.contains("atoll export --home"));
  QVERIFY2(trained.out.contains("train it further with: atoll train --dir"), trained.out);
  QVERIFY2(trained.out.contains("before round 1: validation loss "), trained.out);
  QVERIFY2(trained.out.contains("after round 2: validation loss "), trained.out);
  const Outcome rounds = run({"rounds", "--home", path("run/island"), "--json"});
  const auto json = nlohmann::json::parse(rounds.out.toStdString());
  QCOMPARE(json.at("rounds").size(), std::size_t{2});  // none of which is under way
  for (const auto& round : json.at("rounds")) {
    QVERIFY2(round.at("accepted") == true && round.at("validation_loss_nats").is_number(), rounds.out);
  }
}

void TrainTest::a_finished_run_goes_on_with_more_rounds() {
  const Outcome more = run({"train", "--dir", path("run"), "--rounds", "+2"});
  // Its data is named as when it began.
  const Outcome all = run({"train", "--dir", path("run"), "--rounds", "5", "--data", path("data"), "--lr", "0.001"});
  const Outcome fewer = run({"train", "--dir", path("run"), "--rounds", "3"});

  QVERIFY2(more.exit_code == 0, more.err + more.out);
  QVERIFY2(more.out.contains("the run now has 4 rounds instead of 2 rounds; 2 are done\n"), more.out);
  QVERIFY2(more.out.contains("round 4  loss ") && !more.out.contains("round 5"), more.out);
  QVERIFY2(all.exit_code == 0, all.err + all.out);
  QVERIFY2(all.out.contains("now: learning rate 0.001") && all.out.contains("round 5  loss "), all.out);
  QCOMPARE(fewer.exit_code, static_cast<int>(kExitUsage));
  QVERIFY2(fewer.err.contains("--rounds 3: 5 rounds are done already"), fewer.err);
}

void TrainTest::another_run_begins_with_what_a_run_alone_came_to() {
  const Outcome begun =
      run({"hub", "init", "--home", path("next"), "--name", "next", "--data", path("data"), "--from", path("run")});

  QVERIFY2(begun.exit_code == 0, begun.err + begun.out);
  QVERIFY2(begun.out.contains("it begins with run (after round 5)"), begun.out);
}

void TrainTest::what_cannot_change_of_a_run_is_named() {
  const Outcome outcome = run({"train", "--dir", path("run"), "--rounds", "+2", "--seed", "5", "--batch", "3"});

  QCOMPARE(outcome.exit_code, static_cast<int>(kExitUsage));
  QVERIFY2(outcome.err.contains("of which --batch, --seed cannot change"), outcome.err);
  QVERIFY2(outcome.err.contains("What may change: --rounds, --lr"), outcome.err);
}

void TrainTest::an_interrupted_run_goes_on() {
  // The first round that it tells of, of those that count: under way, so all before are done.
  QByteArray out;
  const auto round_of = [&out](QProcess& process, int least) {
    out.clear();
    for (;;) {
      auto told = QRegularExpression("round (\\d+)  loss").globalMatch(out);
      while (told.hasNext()) {
        if (const int round = told.next().captured(1).toInt(); round >= least) return round;
      }
      if (!process.waitForReadyRead(kLimitMilliseconds)) return -1;
      out += process.readAllStandardOutput();
    }
  };
  const auto first = start(QStringList{"train", "--dir", path("long")} + small());
  QVERIFY2(round_of(*first, 1) >= 1, out);
  ::kill(static_cast<pid_t>(first->processId()), SIGINT);
  QVERIFY(first->waitForFinished(kLimitMilliseconds));
  QVERIFY2(first->exitCode() == 0, first->readAllStandardError());

  const auto second = start({"train", "--dir", path("long")});

  const int goes_on_at = round_of(*second, 0);
  const QByteArray told = out + second->readAllStandardError();
  QVERIFY2(goes_on_at >= 1, told);
  ::kill(static_cast<pid_t>(second->processId()), SIGINT);
  QVERIFY(second->waitForFinished(kLimitMilliseconds));
}

void TrainTest::its_model_is_used() {
  QCOMPARE(defects_of("export", {"export", "--home", path("run/island"), "--output", path("model"), "--json"}),
           std::string());
  QCOMPARE(defects_of("eval", {"eval", "--model", path("model"), "--data", path("data"), "--sequences", "2", "--json"}),
           std::string());
  QCOMPARE(defects_of("eval", {"eval", "--model", path("model"), "--data", path("data"), "--data",
                               "again=" + path("data"), "--sequences", "2", "--json"}),
           std::string());
  QCOMPARE(defects_of("sample", {"sample", "--model", path("model"), "--prompt", "An", "--tokens", "4", "--json"}),
           std::string());
}

void TrainTest::its_loss_is_told_by_source() {
  const QStringList eval{"eval", "--model", path("model"), "--sequences", "2"};
  const QStringList both{"--data", path("data"), "--data", "again=" + path("data")};

  const Outcome outcome = run(eval + both + QStringList{"--json"});
  QVERIFY2(outcome.exit_code == 0, outcome.err);
  const auto json = nlohmann::json::parse(outcome.out.toStdString());
  const nlohmann::json& one = json.at("sources").at("data");
  QVERIFY(one == json.at("sources").at("again"));
  QVERIFY(json.at("tokens") == 2 * one.at("tokens").get<int>());
  QVERIFY(std::abs(json.at("loss_nats").get<double>() - one.at("loss_nats").get<double>()) < 1e-12);
  QVERIFY(run(eval + both).out.contains("validation loss on again: "));

  const Outcome twice = run(eval + QStringList{"--data", path("data"), "--data", path("data")});
  QVERIFY(twice.exit_code != 0);
  QVERIFY2(twice.err.contains("two datasets are called data"), twice.err);
}

void TrainTest::what_cannot_be_trained_is_said_data() {
  QTest::addColumn<QStringList>("arguments");
  QTest::addColumn<QByteArray>("says");
  QTest::newRow("no data") << QStringList{} << QByteArray("--data DIR");
  QTest::newRow("data that is none") << QStringList{"--data", "/nowhere"} << QByteArray("/nowhere");
  QTest::newRow("more than any machine holds")
      << QStringList{"--data", path("data"), "--preset", "10b", "--micro-batch", "128"} << QByteArray("--micro-batch");
}

void TrainTest::what_cannot_be_trained_is_said() {
  QFETCH(const QStringList, arguments);
  QFETCH(const QByteArray, says);

  const Outcome outcome = run(QStringList{"train", "--dir", path("nothing")} + arguments);

  QVERIFY(outcome.exit_code > 0);
  QVERIFY2(outcome.err.contains(says), outcome.err);
  QVERIFY(!QFile::exists(path("nothing/hub/run.json")));
}

QTEST_GUILESS_MAIN(TrainTest)
#include "train_test.moc"
