// Why a trainer ended, from what is left of it.
#include "app/agent/trainer_exit.h"

#include <QtTest>
#include <csignal>
#include <nlohmann/json.hpp>

#include "app/agent/agent_board.h"
#include "net/base/exit_code.h"
#include "net/control/trainer_contract.h"
#include "tests/net/control/event_samples.h"

using namespace atl;

class TrainerExitTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void the_cause_is_told_from_status_and_last_words_data();
  void the_cause_is_told_from_status_and_last_words();
  void only_what_a_verified_hub_said_is_a_refusal();
  void a_hang_is_told_in_the_agents_words();
  void a_kill_for_want_of_memory_is_told_from_any_other();
  void the_error_of_the_trainer_is_kept();
  void what_it_printed_last_tells_why_data();
  void what_it_printed_last_tells_why();
  void one_that_was_not_our_child_tells_its_status_itself();
  void a_word_of_memory_in_a_log_does_not_explain_a_kill();
  void an_old_error_line_is_not_the_cause_of_a_success();
  void without_a_trainer_the_state_says_what_is_still_true();
};

void TrainerExitTest::the_cause_is_told_from_status_and_last_words_data() {
  QTest::addColumn<int>("status");
  QTest::addColumn<QString>("words");
  QTest::addColumn<QString>("cause");
  QTest::newRow("run finished") << 0 << "info trainer ended outer_step=3 run_finished=true"
                                << "run_finished";
  QTest::newRow("stopped") << 0 << "info trainer ended outer_step=3 run_finished=false"
                           << "stopped";
  QTest::newRow("paused") << kTrainerPausedExit << ""
                          << "paused";
  QTest::newRow("finished") << kTrainerFinishedExit << ""
                            << "finished";
  QTest::newRow("killed") << 128 + SIGKILL << ""
                          << "killed";
  QTest::newRow("crashed") << 128 + SIGSEGV << ""
                           << "crashed";
  QTest::newRow("terminated") << 128 + SIGTERM << ""
                              << "stopped";
  QTest::newRow("GPU memory") << 1 << "atoll-trainer: CUDA out of memory. Tried to allocate 2 GiB"
                              << "gpu_memory";
  QTest::newRow("GPU memory, aborted") << 128 + SIGABRT << "CUDA error: out of memory\n"
                                       << "gpu_memory";
  QTest::newRow("GPU lost") << 1 << "GPU has fallen off the bus"
                            << "gpu_lost";
  QTest::newRow("driver") << 1 << "CUDA driver version is insufficient for CUDA runtime version"
                          << "driver";
  QTest::newRow("not finite") << 1 << "atoll-trainer: its pseudo-gradient was not finite"
                              << "not_finite";
  QTest::newRow("hub unreachable") << 10 << "atoll-trainer: the hub did not answer for 120 s"
                                   << "hub_unreachable";
  QTest::newRow("refused") << 5 << "atoll-trainer: removed"
                           << "refused";
  QTest::newRow("other pin") << 9 << ""
                             << "refused";
  QTest::newRow("other version") << 11 << ""
                                 << "unusable";
  QTest::newRow("not joined") << 4 << ""
                              << "unusable";
  QTest::newRow("no memory") << 1 << "atoll-trainer: DefaultCPUAllocator: can't allocate memory: you tried 4 GB"
                             << "out_of_memory";
  QTest::newRow("no memory in C++") << 128 + SIGABRT << "terminate called after throwing 'std::bad_alloc'"
                                    << "out_of_memory";
  QTest::newRow("anything else") << 1 << "atoll-trainer: the sea is rough"
                                 << "other";
}

void TrainerExitTest::the_cause_is_told_from_status_and_last_words() {
  QFETCH(const int, status);
  QFETCH(const QString, words);
  QFETCH(const QString, cause);

  const TrainerExit exit = judge_exit({.status = status, .last_words = words.toStdString()}, 1);

  QCOMPARE(QString::fromStdString(std::string(word_of(exit.cause))), cause);
  QCOMPARE(exit.status, status);
  QCOMPARE(exit.text.empty(), is_success(exit.cause));
}

void TrainerExitTest::only_what_a_verified_hub_said_is_a_refusal() {
  const auto cause = [](ErrorCode code) { return judge_exit({.status = exit_code_of(code)}, 1).cause; };

  QCOMPARE(cause(ErrorCode::kPermissionDenied), ExitCause::kRefused);
  for (const ErrorCode code : {ErrorCode::kUnreachable, ErrorCode::kTimeout, ErrorCode::kCertificate}) {
    QCOMPARE(cause(code), ExitCause::kHubUnreachable);
    QVERIFY(!is_final(cause(code)));
  }
}

void TrainerExitTest::a_hang_is_told_in_the_agents_words() {
  const TrainerExit exit =
      judge_exit({.status = 128 + SIGKILL, .last_words = "CUDA out of memory", .hung = "it did not answer"}, 1);

  QCOMPARE(exit.cause, ExitCause::kHung);
  QCOMPARE(exit.text, std::string("it did not answer"));
}

void TrainerExitTest::a_kill_for_want_of_memory_is_told_from_any_other() {
  QCOMPARE(judge_exit({.status = 128 + SIGKILL, .last_words = "", .memory_kills = true}, 1).cause,
           ExitCause::kOutOfMemory);
  QCOMPARE(judge_exit({.status = 128 + SIGKILL, .last_words = ""}, 1).cause, ExitCause::kKilled);
}

void TrainerExitTest::the_error_of_the_trainer_is_kept() {
  const std::string words = "2026 info step\natoll-trainer: cannot listen on 0.0.0.0:1: taken\ntrainer exit_status=5\n";

  QCOMPARE(judge_exit({.status = 5, .last_words = words}, 1).text, std::string("cannot listen on 0.0.0.0:1: taken"));
}

// One that did not begin, or that a library ended: what it said last, beside its log, is why.
void TrainerExitTest::what_it_printed_last_tells_why_data() {
  QTest::addColumn<QString>("words");
  QTest::addColumn<int>("status");
  QTest::addColumn<QString>("text");
  const QString loader = "/opt/atoll/bin/atoll-trainer: error while loading shared libraries: libtorch.so: cannot open";
  QTest::newRow("the loader") << loader + "\n"
                              << 127
                              << "the trainer ended with status 127: " + loader +
                                     "; what it is made of is not all there: install Atoll again";
  QTest::newRow("an abort, after its log")
      << "2026-01-01T00:00:00.000 info step\nterminate called\n  what():  bad\n2026-01-01T00:00:01.000 info bye\n\n"
      << 128 + SIGABRT << "the trainer ended with signal 6:   what():  bad";
  QTest::newRow("its log alone") << "2026-01-01T00:00:00.000 info step\ntrainer exit_status=1\n"
                                 << 1 << "the trainer ended with status 1 and did not say why";
  QTest::newRow("nothing") << "" << 127
                           << "the trainer ended with status 127 and did not say why; what it is made of is not all "
                              "there: install Atoll again";
}

void TrainerExitTest::what_it_printed_last_tells_why() {
  QFETCH(const QString, words);
  QFETCH(const int, status);
  QFETCH(const QString, text);

  const TrainerExit exit = judge_exit({.status = status, .last_words = words.toStdString()}, 1);

  QCOMPARE(QString::fromStdString(exit.text), text);
}

void TrainerExitTest::one_that_was_not_our_child_tells_its_status_itself() {
  QCOMPARE(judge_exit({.status = {}, .last_words = "info bye\ntrainer exit_status=20\n"}, 1).cause, ExitCause::kPaused);
  QCOMPARE(judge_exit({.status = {}, .last_words = "trainer exit_status=x"}, 1).cause, ExitCause::kKilled);
  QCOMPARE(judge_exit({.status = {}, .last_words = ""}, 1).cause, ExitCause::kKilled);
}

void TrainerExitTest::a_word_of_memory_in_a_log_does_not_explain_a_kill() {
  QCOMPARE(judge_exit({.status = 128 + SIGKILL, .last_words = "warn CUDA out of memory, retried"}, 1).cause,
           ExitCause::kKilled);
}

void TrainerExitTest::an_old_error_line_is_not_the_cause_of_a_success() {
  QCOMPARE(judge_exit({.status = 0, .last_words = "atoll-trainer: something\n"}, 1).text, std::string());
}

// Frozen: whoever adds a field to IslandState decides here whether it is still true when its trainer is gone.
void TrainerExitTest::without_a_trainer_the_state_says_what_is_still_true() {
  const ContributionBook contributions("/no/such/contributions.json");
  AgentBoard board(IslandHome{"/no/such/home"}, contributions);
  AgentFacts facts;
  facts.joined = true;
  facts.trainer_pid = 4711;
  board.set_facts(facts);
  board.set_trainer_state(test::sample_state().island);
  const nlohmann::json before = board.state().island.to_json();

  facts.trainer_pid = 0;
  board.set_facts(facts);
  board.forget_trainer();

  const nlohmann::json after = board.state().island.to_json();
  std::string over;
  for (const auto& [name, value] : before.items()) over += after[name] != value ? name + " " : "";
  QCOMPARE(over, std::string("error flops_per_second memory_bytes mfu micro_batch next_sync_seconds pid state "
                             "step_seconds tokens_per_second "));
  QCOMPARE(after.size(), std::size_t{36});  // one more: is it true of an island whose trainer is gone?
}

QTEST_GUILESS_MAIN(TrainerExitTest)
#include "trainer_exit_test.moc"
