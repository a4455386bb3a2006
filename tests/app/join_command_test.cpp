// `atoll join` in-process, against a real hub and a trainer that is a script.
#include <poll.h>
#include <pty.h>
#include <sys/socket.h>
#include <termios.h>
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

// A person at a terminal, who types or pastes once that is not shown, or at once.
class Person {
 public:
  Person() {
    int ends[2];
    if (::openpty(&ends[0], &ends[1], nullptr, nullptr, nullptr) != 0) qFatal("no terminal");
    keyboard_.reset(ends[0]);
    terminal_.reset(ends[1]);
    input_.emplace(terminal_.get());
  }
  ~Person() { hands_ = {}; }
  void types(const std::string& text) { write(text); }
  void types_once_unseen(std::string text) {
    hands_ = std::jthread([this, text = std::move(text)](const std::stop_token& stop) {
      termios now{};
      do {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        ::tcgetattr(terminal_.get(), &now);
      } while ((now.c_lflag & ECHO) != 0 && !stop.stop_requested());
      write(text);
    });
  }
  std::string sees() const {  // what the terminal has shown of that
    std::string seen;
    pollfd ready{keyboard_.get(), POLLIN, 0};
    char buffer[4096];
    while (::poll(&ready, 1, 0) == 1 && (ready.revents & POLLIN) != 0) {
      const ssize_t count = ::read(keyboard_.get(), buffer, sizeof buffer);
      if (count <= 0) break;
      seen.append(buffer, static_cast<std::size_t>(count));
    }
    return seen;
  }
  bool is_shown() const {
    termios now{};
    return ::tcgetattr(terminal_.get(), &now) == 0 && (now.c_lflag & ECHO) != 0;
  }

 private:
  void write(const std::string& text) const {
    if (::write(keyboard_.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) qFatal("typing");
  }
  UniqueFd keyboard_, terminal_;
  std::optional<StandardInput> input_;
  std::jthread hands_;
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
  void an_invite_that_is_pasted_is_not_shown();
  void consent_is_the_same_however_the_invite_comes_data();
  void consent_is_the_same_however_the_invite_comes();
  void who_sees_errors_alone_is_asked_there();
  void ctrl_c_ends_the_wait_for_an_invite();
  void a_taken_port_does_not_change_what_was_joined();
  void join_enrols_trains_and_comes_back();
  void the_configuration_chooses_the_micro_batch_and_gives_it_back();
  void what_the_trainer_said_last_is_the_error();
  void a_run_does_not_take_the_place_of_another();
  void another_run_is_left_for_it_where_its_owner_says_so_data();
  void another_run_is_left_for_it_where_its_owner_says_so();
  void how_it_was_to_compute_is_kept_only_if_it_trains_so();
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

void JoinCommandTest::an_invite_that_is_pasted_is_not_shown() {
  CliRun atoll;
  const auto hub = atoll.start_hub();
  atoll.fake_trainer("exit 0");
  Person person;
  person.types_once_unseen(atoll.invite);

  const CliOutcome outcome = atoll({"join", "--invite-stdin", "--yes"});

  QVERIFY2(outcome.exit_code == 0, outcome.err.c_str());
  QVERIFY2(!contains(person.sees(), "atoll1."), "the secret was on the screen");
  QVERIFY(!contains(outcome.out + outcome.err, "atoll1."));
  QVERIFY(person.is_shown());  // what comes next is, as before
}

void JoinCommandTest::consent_is_the_same_however_the_invite_comes_data() {
  QTest::addColumn<QString>("by");
  QTest::addColumn<QString>("answer");
  QTest::addColumn<bool>("joins");
  for (const char* by : {"argument", "file", "stdin"}) {
    QTest::addRow("%s, no", by) << by << "n\n" << false;
    QTest::addRow("%s, nothing", by) << by << "\n" << false;
    QTest::addRow("%s, yes", by) << by << "y\ny\n" << true;  // the node check may ask, too
    QTest::addRow("%s, asked nothing", by) << by << "" << true;
  }
}

void JoinCommandTest::consent_is_the_same_however_the_invite_comes() {
  QFETCH(const QString, by);
  QFETCH(const QString, answer);
  QFETCH(const bool, joins);
  CliRun atoll;
  const auto hub = atoll.start_hub();
  atoll.fake_trainer("exit 0");
  atoll.terminal = true;
  std::ofstream(atoll.path("invite.txt")) << atoll.invite;
  Person person;
  std::vector<std::string> arguments{"join"};
  if (by == "argument") arguments.push_back(atoll.invite);
  if (by == "file") arguments.insert(arguments.end(), {"--invite-file", atoll.path("invite.txt").string()});
  if (by == "stdin") arguments.push_back("--invite-stdin");
  if (answer.isEmpty()) arguments.push_back("--yes");
  if (by == "stdin") person.types_once_unseen(atoll.invite + answer.toStdString());
  if (by != "stdin") person.types(answer.toStdString());

  const CliOutcome outcome = atoll(arguments);

  QCOMPARE(std::filesystem::exists(atoll.path("island") / "join.json"), joins);
  QVERIFY2(joins ? outcome.exit_code == 0 : contains(outcome.err, "not joined, as you said"), outcome.err.c_str());
  QCOMPARE(contains(outcome.out, "[y/N]"), !answer.isEmpty());
  for (const char* told : {"run first (", "operator", "model       llama", "each round  up to", "disk        up to",
                           "memory", "leaves", "No files of yours"}) {
    QVERIFY2(contains(outcome.out, told), outcome.out.c_str());
  }
}

// As with `atoll join ... | tee log`.
void JoinCommandTest::who_sees_errors_alone_is_asked_there() {
  CliRun atoll;
  const auto hub = atoll.start_hub();
  atoll.fake_trainer("exit 0");
  atoll.errors_on_terminal = true;
  Person person;
  person.types("n\n");

  const CliOutcome outcome = atoll({"join", atoll.invite});

  QVERIFY(!std::filesystem::exists(atoll.path("island") / "join.json"));
  QVERIFY2(contains(outcome.err, "run first (") && contains(outcome.err, "Join? [y/N]") &&
               contains(outcome.err, "not joined, as you said"),
           outcome.err.c_str());
  QVERIFY2(!contains(outcome.out, "[y/N]"), outcome.out.c_str());
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

void JoinCommandTest::another_run_is_left_for_it_where_its_owner_says_so_data() {
  QTest::addColumn<QString>("answer");
  QTest::addColumn<bool>("leaves");
  QTest::newRow("--yes") << "" << true;
  QTest::newRow("yes") << "y\ny\n" << true;
  QTest::newRow("no") << "n\n" << false;
}

void JoinCommandTest::another_run_is_left_for_it_where_its_owner_says_so() {
  QFETCH(const QString, answer);
  QFETCH(const bool, leaves);
  CliRun atoll;
  atoll.fake_trainer("exit 0");
  const auto first = atoll.start_hub();
  QCOMPARE(atoll({"join", atoll.invite}).exit_code, 0);
  const auto home = atoll.path("island");
  const std::string before = load_join_file(home / "join.json")->run_id;
  std::filesystem::create_directories(home / "checkpoint");
  std::ofstream(home / "checkpoint" / "state") << "a model";
  const auto second = atoll.start_hub("second");
  atoll.terminal = true;
  Person person;
  person.types(answer.toStdString());

  const CliOutcome outcome = answer.isEmpty() ? atoll({"join", atoll.invite, "--yes"}) : atoll({"join", atoll.invite});

  QCOMPARE(outcome.exit_code == 0, leaves);
  QVERIFY2(contains(outcome.out, "belongs to run first") && contains(outcome.out, "checkpoint." + before),
           outcome.out.c_str());
  QCOMPARE(load_join_file(home / "join.json")->run_name, std::string(leaves ? "second" : "first"));
  const auto kept = leaves ? home / ("checkpoint." + before) : home / "checkpoint";
  QCOMPARE(*read_file(kept / "state"), std::string("a model"));
}

void JoinCommandTest::how_it_was_to_compute_is_kept_only_if_it_trains_so() {
  CliRun atoll;
  const auto hub = atoll.start_hub();
  const auto chosen = [&] { return load_join_file(atoll.path("island") / "join.json")->threads; };
  const auto shown = [&] { return atoll({"config", "get", "island.threads", "--origin"}).out; };
  atoll.fake_trainer("exit 0");
  QCOMPARE(atoll({"join", atoll.invite, "--listen", "127.0.0.1:0", "--threads", "2"}).exit_code, 0);
  QCOMPARE(chosen(), 2);
  QCOMPARE(shown(), std::string("2  (atoll join)\n"));

  atoll.fake_trainer("exit 1");
  const CliOutcome failed = atoll({"join", "--threads", "3"});
  QCOMPARE(failed.exit_code, static_cast<int>(kExitTrainerFailed));
  QVERIFY2(contains(failed.out, "is not kept"), failed.out.c_str());
  QCOMPARE(chosen(), 2);
  atoll.fake_trainer("exit 10");  // no fault of it: the hub was away
  QCOMPARE(atoll({"join", "--threads", "3"}).exit_code, static_cast<int>(kExitHubUnreachable));
  QCOMPARE(chosen(), 3);

  QCOMPARE(atoll({"config", "set", "island.threads", "1"}).exit_code, 0);
  QCOMPARE(shown(), std::string("1  (settings)\n"));
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
