// Every message that a hub can send, said to real islands: the whole of Island over real connections, rings and outer
// steps, to which only data and the hub's part are made up. A message that is added to HubMessage does not compile here
// until it has an answered() of its own.
#include <future>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "net/base/encoding.h"
#include "tests/fakes/patience.h"
#include "tests/fakes/test_run.h"
#include "tests/net/hub/scripted_hub.h"
#include "tests/trainer/island/round_loop_fixture.h"
#include "trainer/island/island.h"

using namespace atl;
using namespace atl::test;
using namespace std::chrono_literals;

namespace {

constexpr std::chrono::milliseconds kLimit{kPatience};
const std::string kNobodysHash(64, 'e');
const ToldPast kPast{{{0, 2, 8192, 60.5, 5.25}, {2, 1, 4096, 30, 4.75}}, {{0, 5.5}, {2, 4.5}}};

RunConfig run_of_two() {
  RunConfig run;
  run.run_id = "0123456789abcdef";
  run.name = "scripted";
  run.model_json = tiny_model_json();
  run.dataset_json = "{}";  // batches are made up
  run.inner_steps = kInnerSteps;
  run.sequences_per_step = 2;
  run.sequence_length = kLength;
  run.min_islands = 2;
  run.heartbeat = 100ms;
  run.dead_after = 2s;
  return run;
}

// One island of the run, and the hub that it believes in.
struct Actor {
  Actor(TestRun& run, int number) : hub(run.hub()), id(TestRun::island_id(number)) {
    IslandOptions options;
    options.identity = run.island(number);
    options.hub_addresses = {hub.address()};
    options.display_name = "island " + std::to_string(number);
    options.bind = {"127.0.0.1", 0};
    options.device = DeviceChoice::kProcessor;
    options.make_batches = [](const RunConfig&) -> Result<std::unique_ptr<BatchSource>> {
      return std::unique_ptr<BatchSource>(new FixedBatches);
    };
    options.on_event = [this](const ControlEvent& event) {
      const auto* past = std::get_if<event::PastTold>(&event);
      if (past == nullptr) return;
      MutexLock lock(mutex);
      pasts.push_back(*past);
    };
    island = Island::create(std::move(options)).value();
    ends = std::async(std::launch::async, [this] { return island->run(); });
  }
  ~Actor() { island->request_stop("the test is over"); }

  // The next of its kind; others before it are passed over.
  template <class Message>
  Message hear() {
    const Deadline deadline = Deadline::after(kLimit);
    while (const auto message = hub.hear(deadline)) {
      if (const auto* found = std::get_if<Message>(&*message)) return *found;
    }
    qFatal("%s did not say what was waited for; %s", id.value.c_str(), has_ended() ? "it has ended" : "it still runs");
  }
  std::vector<event::PastTold> told_pasts() const {
    MutexLock lock(mutex);
    return pasts;
  }
  bool has_ended() const { return ends.wait_for(0s) == std::future_status::ready; }
  RosterEntry entry() const { return {id, "island", {"127.0.0.1", hello.listen_port}, to_hex(hub.peer().key_sha256)}; }

  ScriptedHub hub;
  const IslandId id;
  IslandHello hello;
  mutable Mutex mutex;
  std::vector<event::PastTold> pasts ATOLL_GUARDED_BY(mutex);  // that its owner was told
  std::unique_ptr<Island> island;
  std::future<Status> ends;  // last: waits for the island's thread
};

// Two islands that were welcomed and know each other.
class Stage {
 public:
  Stage() : a_(run_, 1), b_(run_, 2) {
    each([](Actor& actor) { actor.hello = actor.hear<IslandHello>(); });
    each([&](Actor& actor) {
      actor.hub.say(HubWelcome{.run = config_, .outer_step = OuterStep{0}, .epoch = actor.hub.epoch(1)});
      actor.hub.say(roster());
    });
  }

  template <class Act>
  void each(const Act& act) {
    act(a_);
    act(b_);
  }
  void say(const HubMessage& message) {
    each([&](Actor& actor) { actor.hub.say(message); });
  }
  HubRoster roster() const { return {{a_.entry(), b_.entry()}}; }
  Actor& a() { return a_; }
  Actor& b() { return b_; }
  const RunConfig& config() const { return config_; }

  void initialise() {
    say(HubInitialise{});
    each([&](Actor& actor) { state_hash_ = actor.hear<IslandRecovered>().state_hash; });
  }
  const std::string& initial_hash() const { return state_hash_; }
  void train(std::uint32_t round = 0) {
    say(HubRoundBegin{OuterStep{round}, kInnerSteps, round * 4, 4});
    each([&](Actor& actor) { ready_ = actor.hear<IslandReady>(); });
  }
  const IslandReady& ready() const { return ready_; }
  HubAttempt attempt() const { return {ready_.round, Attempt{attempts_}, {member(a_), member(b_)}}; }
  HubAttempt next_attempt() {
    ++attempts_;
    return attempt();
  }
  // Both hold the average of it.
  IslandHave average() {
    initialise();
    train();
    say(next_attempt());
    each([&](Actor& actor) { have_ = actor.hear<IslandHave>(); });
    return have_;
  }
  HubCommit commit(const IslandHave& have) const {
    HubCommit commit;
    commit.round = have.round;
    commit.attempt = have.attempt;
    commit.digest = have.digest;
    commit.outer_learning_rate = 0.7;
    commit.outer_momentum = 0.9;
    commit.members = attempt().order;
    commit.epoch = 1;
    return a_.hub.signed_commit(commit);
  }
  // A round after what was said goes from its beginning to its commit.
  void goes_on() {
    QVERIFY(!a_.has_ended() && !b_.has_ended());
    const IslandHave have = average();
    say(commit(have));
    each([](Actor& actor) { QCOMPARE(actor.hear<IslandApplied>().outer_step, OuterStep{1}); });
  }

 private:
  AttemptMember member(const Actor& actor) const { return {actor.id, actor.entry().address, ready_.tokens}; }

  TestRun run_;
  const RunConfig config_ = run_of_two();
  std::string state_hash_;
  IslandReady ready_;
  IslandHave have_;
  std::uint32_t attempts_ = 0;
  Actor a_, b_;
};

// ---- what the islands do when they are told it

void answered(Stage& stage, std::type_identity<HubWelcome>) {
  stage.each([&](Actor& actor) {
    actor.hub.say(HubWelcome{.run = stage.config(), .outer_step = OuterStep{0}, .epoch = actor.hub.epoch(1)});
  });
  stage.goes_on();
}

void answered(Stage& stage, std::type_identity<HubRoster>) {
  stage.say(HubRoster{{stage.a().entry()}, {IslandId{"isl-00000000000000aa"}}});
  QTRY_COMPARE(stage.a().island->state().islands_live, 1u);
  stage.say(stage.roster());
  stage.goes_on();
}

void answered(Stage& stage, std::type_identity<HubRecover>) {
  stage.initialise();
  stage.say(HubRecover{OuterStep{0}, stage.initial_hash(), {}});
  stage.each([&](Actor& actor) { QCOMPARE(actor.hear<IslandRecovered>().state_hash, stage.initial_hash()); });
  stage.say(HubRecover{OuterStep{5}, kNobodysHash, {stage.a().id, stage.b().id}});  // in vain, for ever
  QTRY_COMPARE(stage.a().island->state().state, IslandPhase::kRecovering);
  stage.goes_on();
}

void answered(Stage& stage, std::type_identity<HubInitialise>) {
  stage.initialise();
  QCOMPARE(stage.initial_hash().size(), std::size_t{64});
  stage.goes_on();
}

void answered(Stage& stage, std::type_identity<HubRoundBegin>) {
  stage.initialise();
  stage.train();
  QCOMPARE(stage.ready().round, OuterStep{0});
  QCOMPARE(stage.ready().tokens, std::uint64_t{kInnerSteps * 2 * kLength});
  QVERIFY(stage.ready().norm_over_steps > 0);
  stage.goes_on();
}

void answered(Stage& stage, std::type_identity<HubAttempt>) {
  stage.initialise();
  stage.say(stage.next_attempt());
  stage.each([](Actor& actor) { QVERIFY(!actor.hear<IslandAttemptFailed>().reason.empty()); });  // it has no work
  const IslandHave have = stage.average();
  QCOMPARE(have.digest.size(), std::size_t{64});
  stage.say(stage.attempt());  // as after a reconnection
  stage.each([&](Actor& actor) { QCOMPARE(actor.hear<IslandHave>().digest, have.digest); });
  stage.goes_on();
}

void answered(Stage& stage, std::type_identity<HubAbort>) {
  const IslandHave have = stage.average();
  stage.say(HubAbort{have.round, have.attempt, "another member was lost"});
  stage.each([](Actor& actor) { QCOMPARE(actor.hear<IslandAttemptFailed>().whole_buckets, std::vector<bool>{true}); });
  HubAttempt next = stage.next_attempt();
  next.final_buckets = {true};
  stage.say(next);
  stage.each([&](Actor& actor) { QCOMPARE(actor.hear<IslandHave>().attempt, next.attempt); });
  stage.goes_on();
}

void answered(Stage& stage, std::type_identity<HubCommit>) {
  const IslandHave have = stage.average();
  stage.say(stage.commit({have.round, have.attempt, kNobodysHash}));
  stage.each([](Actor& actor) { QVERIFY(!actor.hear<IslandAttemptFailed>().reason.empty()); });  // does not hold it
  stage.say(HubRecover{OuterStep{0}, stage.initial_hash(), {}});
  stage.each([&](Actor& actor) { QCOMPARE(actor.hear<IslandRecovered>().state_hash, stage.initial_hash()); });
  stage.goes_on();
}

void answered(Stage& stage, std::type_identity<HubGoodbye>) {
  stage.initialise();
  stage.a().hub.say(HubGoodbye{ErrorCode::kAborted, "max_rounds is reached", true});
  stage.b().hub.say(HubGoodbye{ErrorCode::kPermissionDenied, "removed by its operator", false});
  const Status finished = stage.a().ends.get(), sent_away = stage.b().ends.get();
  QVERIFY(finished.ok());
  QVERIFY(stage.a().island->run_finished());
  QVERIFY(!sent_away.ok());
  QVERIFY(sent_away.error().message.find("removed by its operator") != std::string::npos);
}

void answered(Stage& stage, std::type_identity<HubProbe>) {
  stage.initialise();
  stage.a().hub.say(HubProbe{stage.b().id, 100'000});
  const IslandLinkReport report = stage.a().hear<IslandLinkReport>();
  QCOMPARE(report.links.size(), std::size_t{1});
  QCOMPARE(report.links[0].peer, stage.b().id);
  QVERIFY(report.links[0].bytes_per_second > 0);
  stage.a().hub.say(HubProbe{IslandId{"isl-00000000000000aa"}, 0});  // not in the roster
  stage.goes_on();
}

// Whether the average's bytes are what they ought to be is another test's; here they are all asked for.
void answered(Stage& stage, std::type_identity<HubShowChunks>) {
  const IslandHave have = stage.average();
  stage.say(HubShowChunks{have.round, have.attempt});
  const IslandChunks of_a = stage.a().hear<IslandChunks>(), of_b = stage.b().hear<IslandChunks>();
  QCOMPARE(of_a.digests.size(), std::size_t{2});  // a chunk a member
  QCOMPARE(of_a.digests, of_b.digests);
  QVERIFY(of_a.digests[0] != of_a.digests[1]);
  stage.say(HubShowChunks{have.round, Attempt{have.attempt.value + 1}});
  stage.each([](Actor& actor) { QVERIFY(actor.hear<IslandChunks>().digests.empty()); });
  stage.goes_on();
}

void answered(Stage& stage, std::type_identity<HubNotice>) {
  stage.say(HubNotice{"the run stands still"});
  stage.each([](Actor& actor) { QTRY_COMPARE(actor.island->state().error, std::string("the run stands still")); });
  stage.say(HubNotice{});
  stage.each([](Actor& actor) { QTRY_VERIFY(actor.island->state().error.empty()); });
  stage.goes_on();
}

void answered(Stage& stage, std::type_identity<HubSafe>) {
  stage.say(HubSafe{OuterStep{7}});
  stage.each([](Actor& actor) { QTRY_COMPARE(actor.island->state().safe_outer_step, std::optional(7u)); });
  stage.goes_on();
}

// This run has no store: nobody asked an island of it to write there (state_uploader_test has one).
void answered(Stage& stage, std::type_identity<HubUpload>) {
  stage.initialise();
  stage.say(HubUpload{OuterStep{0}, stage.initial_hash()});
  stage.goes_on();
}

void answered(Stage& stage, std::type_identity<HubNeighbours>) {
  stage.initialise();
  stage.train();
  stage.say(HubNeighbours{stage.attempt().order, Schedule::kRing, 1'000'000});
  stage.goes_on();
}

struct Case {
  std::string type;  // as it is written
  void (*answered)(Stage&);
};

template <std::size_t Index>
Case case_of() {
  const nlohmann::json written = nlohmann::json::parse(encode(HubMessage(std::in_place_index<Index>)));
  return {written.at("type"),
          [](Stage& stage) { answered(stage, std::type_identity<std::variant_alternative_t<Index, HubMessage>>{}); }};
}

template <std::size_t... Index>
std::vector<Case> cases_of(std::index_sequence<Index...>) {
  return {case_of<Index>()...};
}

std::vector<Case> all_messages() { return cases_of(std::make_index_sequence<std::variant_size_v<HubMessage>>{}); }

}  // namespace

class HubMessagesTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void every_message_is_answered_by_a_real_island_data();
  void every_message_is_answered_by_a_real_island();
  void what_cannot_be_followed_is_refused_and_the_island_goes_on_data();
  void what_cannot_be_followed_is_refused_and_the_island_goes_on();
  void the_past_that_a_hub_tells_comes_to_the_islands_owner();
  void a_past_that_no_hub_tells_is_refused_and_the_island_goes_on_data();
  void a_past_that_no_hub_tells_is_refused_and_the_island_goes_on();
};

void HubMessagesTest::every_message_is_answered_by_a_real_island_data() {
  QTest::addColumn<std::size_t>("index");
  std::size_t index = 0;
  for (const Case& one : all_messages()) QTest::newRow(one.type.c_str()) << index++;
}

void HubMessagesTest::every_message_is_answered_by_a_real_island() {
  QFETCH(const std::size_t, index);
  const Case asked = all_messages()[index];
  Stage stage;

  asked.answered(stage);

  QVERIFY2(!QTest::currentTestFailed(), asked.type.c_str());
}

void HubMessagesTest::what_cannot_be_followed_is_refused_and_the_island_goes_on_data() {
  QTest::addColumn<QString>("attempt");
  for (const char* what : {"of nobody", "of others", "that weighs nothing", "with too many final buckets",
                           "with another's final buckets", "directly with one who is not there"}) {
    QTest::newRow(what) << QString(what);
  }
}

void HubMessagesTest::what_cannot_be_followed_is_refused_and_the_island_goes_on() {
  QFETCH(const QString, attempt);
  Stage stage;
  stage.initialise();
  stage.train();
  HubAttempt asked = stage.next_attempt();
  if (attempt == "of nobody") asked.order.clear();
  if (attempt == "of others") asked.order = {{IslandId{"isl-00000000000000aa"}, {"127.0.0.1", 1}, 32}};
  for (AttemptMember& member : asked.order) member.tokens = attempt == "that weighs nothing" ? 0 : member.tokens;
  if (attempt == "with too many final buckets") asked.final_buckets = {true, false, true};
  if (attempt == "with another's final buckets") asked.final_buckets = {true};
  if (attempt.startsWith("directly")) {
    asked.schedule = Schedule::kDirect;
    asked.order.push_back({IslandId{"isl-00000000000000aa"}, {"127.0.0.1", 1}, 32});
  }

  stage.say(asked);

  stage.each([](Actor& actor) { QVERIFY(!actor.hear<IslandAttemptFailed>().reason.empty()); });
  stage.say(HubShowChunks{asked.round, asked.attempt});
  stage.each([](Actor& actor) { QVERIFY(actor.hear<IslandChunks>().digests.empty()); });
  stage.goes_on();
}

void HubMessagesTest::the_past_that_a_hub_tells_comes_to_the_islands_owner() {
  TestRun run;
  Actor actor(run, 1);
  actor.hello = actor.hear<IslandHello>();
  QVERIFY(actor.told_pasts().empty());
  actor.hub.tell_past(encode(kPast));

  actor.hub.say(HubWelcome{.run = run_of_two(), .outer_step = OuterStep{3}, .epoch = actor.hub.epoch(1)});

  QTRY_COMPARE(actor.told_pasts().size(), std::size_t{1});
  const event::PastTold told = actor.told_pasts().front();
  QCOMPARE(encode(told.past), encode(kPast));
  QCOMPARE(told.run, std::string("0123456789abcdef"));
  QCOMPARE(told.inner_steps, kInnerSteps);
}

void HubMessagesTest::a_past_that_no_hub_tells_is_refused_and_the_island_goes_on_data() {
  QTest::addColumn<QByteArray>("past");
  ToldPast overlapping = kPast;
  overlapping.rounds[1].round = 1;
  QTest::newRow("a hub of before") << QByteArray();
  QTest::newRow("garbage") << QByteArray("what was");
  QTest::newRow("rounds that overlap") << QByteArray::fromStdString(encode(overlapping));
  ToldPast ahead = kPast;
  ahead.rounds.push_back({100'000, 1, 4096, 30, 4.5});
  QTest::newRow("rounds that nobody made yet") << QByteArray::fromStdString(encode(ahead));
  QTest::newRow("too much") << QByteArray::fromStdString(encode(kPast)) +
                                   QByteArray(static_cast<int>(kMaxPastBytes), ' ');
  QTest::newRow("without end") << QByteArray(64 << 20, '[');
}

void HubMessagesTest::a_past_that_no_hub_tells_is_refused_and_the_island_goes_on() {
  QFETCH(const QByteArray, past);
  Stage stage;
  Actor& actor = stage.a();
  QTRY_VERIFY(actor.hub.times_asked_for_past() > 0);  // of a hub of before
  actor.hub.tell_past(past.toStdString());

  stage.goes_on();

  actor.hub.say(HubGoodbye{ErrorCode::kAborted, "max_rounds is reached", true});
  QVERIFY(actor.ends.get().ok());
  QVERIFY(actor.hub.times_asked_for_past() > 1);  // at the end
  QVERIFY(actor.told_pasts().empty());
}

QTEST_GUILESS_MAIN(HubMessagesTest)
#include "hub_messages_test.moc"
