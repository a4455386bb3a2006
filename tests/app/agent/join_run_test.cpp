// From an invite to a home that belongs to a run, when the hub's answer does not arrive.
#include "app/agent/join_run.h"

#include <QTemporaryDir>
#include <QtTest>
#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "app/agent/agent_config.h"
#include "net/enrol/enroller.h"
#include "net/tls/identity.h"
#include "tests/fakes/enrol_server.h"
#include "tests/fakes/test_run.h"
#include "tests/net/hub/loopback_hub.h"

using namespace std::chrono_literals;

namespace atl {

class JoinRunTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void init();
  void a_join_whose_answer_was_lost_comes_through_with_the_same_invite();
  void a_key_that_the_hub_refuses_for_good_is_not_shown_again();
  void who_was_removed_joins_again_with_a_new_invite();
  void who_was_removed_does_not_come_back_without_an_invite();
  void nought_takes_back_shards_and_threads_of_before();

 private:
  Invite invite(std::uint32_t uses, const Address& hub) {
    const auto expires = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now()) + 1h;
    return make_invite(run_.authority(), *store_, "test run", {hub}, uses, expires).value();
  }
  Result<JoinOutcome> join(const Invite& with, const AbortSignal& interrupt) {
    JoinRequest request;
    request.invite = with;
    return join_run(request, home_, &interrupt, [](const Invite&) { return ok_status(); });
  }

  TestRun run_;
  std::unique_ptr<QTemporaryDir> directory_;
  std::unique_ptr<Database> database_;
  std::unique_ptr<EnrolmentStore> store_;
  std::unique_ptr<Enroller> enroller_;
  IslandHome home_;
};

void JoinRunTest::init() {
  directory_ = std::make_unique<QTemporaryDir>();
  home_ = IslandHome{directory_->filePath("home").toStdString()};
  database_ = std::make_unique<Database>(Database::open(directory_->filePath("hub.db").toStdString()).value());
  store_ = std::make_unique<EnrolmentStore>(EnrolmentStore::open(*database_).value());
  enroller_ = std::make_unique<Enroller>(run_.authority(), *store_, std::vector<Address>{},
                                         [] { return std::chrono::system_clock::now(); });
}

// Of a request, and of a configuration whose owner wrote it down: 0 is what its help says, not "as before".
void JoinRunTest::nought_takes_back_shards_and_threads_of_before() {
  EnrolServer server(run_.hub(), [&](const EnrolRequest& request) { return enroller_->handle(request).value(); });
  AbortSignal never;
  const auto consent = [](const Invite&) { return ok_status(); };
  JoinRequest several;
  several.invite = invite(1, server.address());
  several.local_ranks = 3;
  several.threads = 5;
  QVERIFY(join_run(several, home_, &never, consent).ok());

  const auto as_before = join_run({}, home_, &never, consent);
  QCOMPARE(as_before->join.local_ranks, 3);
  QCOMPARE(as_before->join.threads, 5);
  Config config = Config::defaults();
  JoinRequest by_default, by_owner;
  apply_config(config, by_default);
  for (const char* key : {"island.local_ranks", "island.threads"}) {
    config.set(*find_config_key(key).value(), {"0", "settings"});
  }
  apply_config(config, by_owner);
  QVERIFY(!by_default.local_ranks && !by_default.threads);
  const auto taken_back = join_run(by_owner, home_, &never, consent);

  QCOMPARE(taken_back->join.local_ranks, 0);
  QCOMPARE(taken_back->join.threads, 0);
}

void JoinRunTest::a_join_whose_answer_was_lost_comes_through_with_the_same_invite() {
  AbortSignal interrupt, never;
  EnrolServer server(run_.hub(), [&](const EnrolRequest& request) {
    interrupt.raise("interrupted");  // so that it does not ask again by itself
    return enroller_->handle(request).value();
  });
  const Invite once = invite(1, server.address());
  server.lose_answers(1);
  QVERIFY(!join(once, interrupt).ok());
  QCOMPARE(store_->invites()->at(0).uses_left, 0u);
  QVERIFY(std::filesystem::exists(home_.join_key_file()));

  const auto joined = join(once, never);

  QVERIFY2(joined.ok(), joined.ok() ? "" : joined.error().message.c_str());
  QCOMPARE(store_->islands()->size(), std::size_t{1});
  QCOMPARE(load_identity(home_.identity())->name, store_->islands()->at(0).id);
  QVERIFY(!std::filesystem::exists(home_.join_key_file()));  // the identity has it
}

void JoinRunTest::a_key_that_the_hub_refuses_for_good_is_not_shown_again() {
  AbortSignal interrupt, never;
  EnrolServer server(run_.hub(), [&](const EnrolRequest& request) {
    interrupt.raise("interrupted");
    return enroller_->handle(request).value();
  });
  const Invite twice = invite(2, server.address());
  server.lose_answers(1);
  QVERIFY(!join(twice, interrupt).ok());
  QVERIFY(store_->remove_island(store_->islands()->at(0).id).ok());  // its operator wondered who that is

  const auto refused = join(twice, never);
  const auto joined = join(twice, never);

  QCOMPARE(refused.error().code, ErrorCode::kConflict);
  QVERIFY2(joined.ok(), joined.ok() ? "" : joined.error().message.c_str());
}

void JoinRunTest::who_was_removed_joins_again_with_a_new_invite() {
  const LoopbackHub hub(loopback_run(1, 0));
  const AbortSignal never;
  const auto invite_of_hub = [&] {
    const InviteReport report = create_invite(hub.directory(), {.addresses = {hub.address()}}).value();
    return decode_invite(report.text, std::chrono::sys_seconds{}).value();
  };
  QVERIFY(join(invite_of_hub(), never).ok());
  const IslandId first = load_identity(home_.identity())->name;
  QVERIFY(join(invite_of_hub(), never).ok());
  QCOMPARE(load_identity(home_.identity())->name, first);  // a member needs no invite
  QCOMPARE(enrolled_islands(hub.directory())->size(), std::size_t{1});

  QVERIFY(remove_enrolled_island(hub.directory(), first.value).ok());
  const auto joined = join(invite_of_hub(), never);

  QVERIFY2(joined.ok(), joined.ok() ? "" : joined.error().message.c_str());
  QVERIFY(load_identity(home_.identity())->name != first);
  QCOMPARE(enrolled_islands(hub.directory())->size(), std::size_t{2});
}

// It is told so at once, not by a trainer that the hub turns away.
void JoinRunTest::who_was_removed_does_not_come_back_without_an_invite() {
  LoopbackHub hub(loopback_run(1, 0));
  const AbortSignal never;
  const InviteReport report = create_invite(hub.directory(), {.addresses = {hub.address()}}).value();
  QVERIFY(join(decode_invite(report.text, std::chrono::sys_seconds{}).value(), never).ok());
  const auto come_back = [&](std::vector<std::pair<JoinStage, StageStatus>>& told) {
    return join_run(
        {}, home_, &never, [](const Invite&) { return ok_status(); },
        [&](JoinStage stage, StageStatus status) { told.emplace_back(stage, status); });
  };
  std::vector<std::pair<JoinStage, StageStatus>> as_member, as_removed, unasked;
  const auto before = come_back(as_member);

  QVERIFY(remove_enrolled_island(hub.directory(), load_identity(home_.identity())->name.value).ok());
  const auto removed = come_back(as_removed);
  hub.stop();
  const auto silent = come_back(unasked);  // a hub that cannot be asked has removed nobody

  QVERIFY(before.ok() && silent.ok());
  QVERIFY(!removed.ok());
  QCOMPARE(removed.error().code, ErrorCode::kPermissionDenied);
  const std::string& said = removed.error().message;
  QVERIFY2(said.find("was removed from run") != std::string::npos, said.c_str());
  QVERIFY2(said.find("operator") != std::string::npos && said.find("--invite-stdin") != std::string::npos,
           said.c_str());
  const std::pair enrolled(JoinStage::kEnrol, StageStatus::kDone);
  QVERIFY(std::ranges::find(as_member, enrolled) != as_member.end());
  QVERIFY(std::ranges::find(as_removed, enrolled) == as_removed.end());
  QVERIFY(std::filesystem::exists(home_.join_file()));  // its states can still be exported
}

}  // namespace atl

QTEST_GUILESS_MAIN(atl::JoinRunTest)
#include "join_run_test.moc"
