// `atoll join` in-process, against a real hub and a trainer that is a script.
#include <pty.h>
#include <sys/socket.h>
#include <unistd.h>

#include <QtTest>
#include <thread>

#include "net/base/file.h"
#include "net/control/home.h"
#include "tests/app/cli_run.h"

using namespace atl;
using atl::test::CliOutcome;
using atl::test::CliRun;
using atl::test::contains;

namespace {

// Standard input for a while.
class StandardInput {
 public:
  explicit StandardInput(int fd) : before_(::dup(STDIN_FILENO)) { ::dup2(fd, STDIN_FILENO); }
  ~StandardInput() { ::dup2(before_.get(), STDIN_FILENO); }

 private:
  UniqueFd before_;
};

}  // namespace

class JoinCommandTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void join_tells_invites_apart_data();
  void join_tells_invites_apart();
  void an_empty_invite_file_is_named();
  void an_invite_is_read_from_a_pipe();
  void an_invite_pasted_over_two_lines_is_enough_at_a_terminal();
  void ctrl_c_ends_the_wait_for_an_invite();
  void a_taken_port_does_not_change_what_was_joined();
  void join_enrols_trains_and_comes_back();
  void the_configuration_chooses_the_micro_batch_and_gives_it_back();
  void what_the_trainer_said_last_is_the_error();
  void a_run_does_not_take_the_place_of_another();
  void a_trainer_that_fails_is_exit_code_13();
};

void JoinCommandTest::join_tells_invites_apart_data() {
  QTest::addColumn<QString>("invite");
  QTest::addColumn<int>("code");
  QTest::newRow("none") << "" << int{kExitNotJoined};
  QTest::newRow("no invite at all") << "hello" << int{kExitUsage};
  QTest::newRow("damaged") << "damaged" << int{kExitUsage};
  QTest::newRow("used up") << "used" << int{kExitInvite};
  QTest::newRow("hub gone") << "gone" << int{kExitHubUnreachable};
}

void JoinCommandTest::join_tells_invites_apart() {
  QFETCH(const QString, invite);
  QFETCH(const int, code);
  CliRun atoll;
  auto hub = atoll.start_hub();
  atoll.fake_trainer("exit 0");
  std::string text = invite.toStdString();
  if (text == "damaged")
    text = atoll.invite.substr(0, 20) + (atoll.invite[20] == 'x' ? 'y' : 'x') + atoll.invite.substr(21);
  if (text == "used" || text == "gone") text = atoll.invite;
  if (invite == "used") QCOMPARE(atoll({"join", text, "--home", atoll.path("before").string()}).exit_code, 0);
  if (invite == "gone") hub.reset();

  const CliOutcome outcome = text.empty() ? atoll({"join"}) : atoll({"join", text});

  QVERIFY2(outcome.exit_code == code, outcome.err.c_str());
  QCOMPARE(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1);
  QVERIFY(!std::filesystem::exists(atoll.path("island") / "join.json"));
}

void JoinCommandTest::an_empty_invite_file_is_named() {
  CliRun atoll;
  std::ofstream(atoll.path("invite.txt")) << "\n";

  const CliOutcome outcome = atoll({"join", "--invite-file", atoll.path("invite.txt").string()});

  QCOMPARE(outcome.exit_code, static_cast<int>(kExitUsage));
  QVERIFY2(contains(outcome.err, "invite.txt is empty"), outcome.err.c_str());
}

void JoinCommandTest::an_invite_is_read_from_a_pipe() {
  CliRun atoll;
  const auto hub = atoll.start_hub();
  atoll.fake_trainer("exit 0");
  int ends[2];
  QCOMPARE(::pipe(ends), 0);
  const UniqueFd reading(ends[0]);
  UniqueFd writing(ends[1]);
  QVERIFY(::write(writing.get(), atoll.invite.data(), atoll.invite.size()) ==
          static_cast<ssize_t>(atoll.invite.size()));
  writing.reset();
  const StandardInput input(reading.get());

  const CliOutcome outcome = atoll({"join", "--invite-stdin"});

  QVERIFY2(outcome.exit_code == 0, outcome.err.c_str());
}

void JoinCommandTest::an_invite_pasted_over_two_lines_is_enough_at_a_terminal() {
  CliRun atoll;
  const auto hub = atoll.start_hub();
  atoll.fake_trainer("exit 0");
  int ends[2];
  QCOMPARE(::openpty(&ends[0], &ends[1], nullptr, nullptr, nullptr), 0);
  const UniqueFd keyboard(ends[0]), terminal(ends[1]);
  const std::string typed = atoll.invite.substr(0, 30) + "\n" + atoll.invite.substr(30);
  QVERIFY(::write(keyboard.get(), typed.data(), typed.size()) == static_cast<ssize_t>(typed.size()));
  const StandardInput input(terminal.get());

  const CliOutcome outcome = atoll({"join", "--invite-stdin"});  // nobody types an end of file

  QVERIFY2(outcome.exit_code == 0, outcome.err.c_str());
  QVERIFY(contains(outcome.err, "Paste the invite"));
}

void JoinCommandTest::ctrl_c_ends_the_wait_for_an_invite() {
  CliRun atoll;
  int ends[2];
  QCOMPARE(::pipe(ends), 0);
  const UniqueFd reading(ends[0]), writing(ends[1]);
  const StandardInput input(reading.get());
  CliOutcome outcome;
  std::thread joining([&] { outcome = atoll({"join", "--invite-stdin"}); });

  atoll.interrupt.raise("interrupted");
  joining.join();

  QCOMPARE(outcome.exit_code, static_cast<int>(kExitInterrupted));
}

void JoinCommandTest::a_taken_port_does_not_change_what_was_joined() {
  CliRun atoll;
  const auto hub = atoll.start_hub();
  atoll.fake_trainer("exit 0");
  QCOMPARE(atoll({"join", atoll.invite, "--listen", "127.0.0.1:0"}).exit_code, 0);
  const std::string taken = "127.0.0.1:" + std::to_string(hub->port());

  const CliOutcome outcome = atoll({"join", "--listen", taken});

  QCOMPARE(outcome.exit_code, static_cast<int>(kExitDenied));
  QVERIFY2(contains(outcome.err, taken) && contains(outcome.err, "--listen"), outcome.err.c_str());
  QCOMPARE(load_join_file(atoll.path("island") / "join.json")->bind.port, std::uint16_t{0});
}

void JoinCommandTest::join_enrols_trains_and_comes_back() {
  CliRun atoll;
  const auto hub = atoll.start_hub();
  atoll.fake_trainer("exit 0");
  std::ofstream(atoll.path("invite.txt")) << atoll.invite;

  const CliOutcome joined = atoll({"join", "--invite-file", atoll.path("invite.txt").string(), "--name",
                                   "under the desk", "--listen", "127.0.0.1:0", "--threads", "2", "--gpus", "none",
                                   "--micro-batch", "3", "--precision", "bf16", "--device", "processor"});
  const CliOutcome back = atoll({"join"});

  QVERIFY2(joined.exit_code == 0, joined.err.c_str());
  QVERIFY(contains(joined.out, "joined run first as under the desk"));
  QVERIFY(!contains(joined.out + joined.err, atoll.invite.substr(0, 40)));
  QVERIFY(contains(back.out, "back to run first"));
  const auto join = load_join_file(atoll.path("island") / "join.json");
  QCOMPARE(join->threads, 2);
  QCOMPARE(join->micro_batch, 3);
  QCOMPARE(join->precision, PrecisionChoice::kBf16);
  QCOMPARE(join->device, DeviceChoice::kProcessor);
  QCOMPARE(join->gpus, std::string("none"));
  QCOMPARE(join->bind.host, std::string("127.0.0.1"));
  const std::string call = "run --home " + atoll.path("island").string() + "\n";
  QCOMPARE(*read_file(atoll.path("calls")), call + call);
}

void JoinCommandTest::the_configuration_chooses_the_micro_batch_and_gives_it_back() {
  CliRun atoll;
  const auto hub = atoll.start_hub();
  atoll.fake_trainer("exit 0");
  const auto chosen = [&] { return load_join_file(atoll.path("island") / "join.json")->micro_batch; };
  QCOMPARE(atoll({"config", "set", "island.micro_batch", "2"}).exit_code, 0);

  QCOMPARE(atoll({"join", atoll.invite, "--listen", "127.0.0.1:0"}).exit_code, 0);
  QCOMPARE(chosen(), 2);
  QCOMPARE(atoll({"join", "--micro-batch", "5"}).exit_code, 0);  // the command line comes first
  QCOMPARE(chosen(), 5);
  QCOMPARE(atoll({"config", "set", "island.micro_batch", "0"}).exit_code, 0);
  QCOMPARE(atoll({"join"}).exit_code, 0);

  QCOMPARE(chosen(), 0);
  const CliOutcome wrong = atoll({"join", "--precision", "fp8"});
  QCOMPARE(wrong.exit_code, 2);
  QVERIFY2(contains(wrong.err, "auto, fp32 or bf16"), wrong.err.c_str());
}

void JoinCommandTest::what_the_trainer_said_last_is_the_error() {
  CliRun atoll;
  const auto hub = atoll.start_hub();
  atoll.fake_trainer(
      "echo '2026-01-01T00:00:00.000 info a log line'\necho 'atoll-trainer: the hub is gone' >&2; exit 10");

  const CliOutcome outcome = atoll({"join", atoll.invite});

  QCOMPARE(outcome.exit_code, static_cast<int>(kExitHubUnreachable));
  QVERIFY2(!contains(outcome.out, "a log line"), outcome.out.c_str());  // that is for atoll logs
  QCOMPARE(outcome.err, std::string("atoll: the hub is gone\n"));
}

void JoinCommandTest::a_run_does_not_take_the_place_of_another() {
  CliRun atoll;
  atoll.fake_trainer("exit 0");
  const auto first = atoll.start_hub();
  QCOMPARE(atoll({"join", atoll.invite}).exit_code, 0);
  const auto second = atoll.start_hub("second");

  const CliOutcome outcome = atoll({"join", atoll.invite});

  QCOMPARE(outcome.exit_code, static_cast<int>(kExitInvite));
  QVERIFY2(contains(outcome.err, "belongs to run first") && contains(outcome.err, "--home"), outcome.err.c_str());
  QCOMPARE(atoll({"join", atoll.invite, "--home", atoll.path("elsewhere").string()}).exit_code, 0);
}

void JoinCommandTest::a_trainer_that_fails_is_exit_code_13() {
  CliRun atoll;
  const auto hub = atoll.start_hub();
  atoll.fake_trainer("exit 1");
  QCOMPARE(atoll({"join", atoll.invite}).exit_code, static_cast<int>(kExitTrainerFailed));
  atoll.fake_trainer("kill -9 $$");
  QCOMPARE(atoll({"join"}).exit_code, static_cast<int>(kExitTrainerFailed));
  atoll.fake_trainer("exit 10");
  QCOMPARE(atoll({"join"}).exit_code, static_cast<int>(kExitHubUnreachable));
  qputenv("ATOLL_TRAINER", "/no/such/trainer");
  QVERIFY(atoll({"join"}).exit_code != 0);
}

QTEST_GUILESS_MAIN(JoinCommandTest)
#include "join_command_test.moc"
