#include "net/mesh/commit_signature.h"

#include <QtTest>

#include "tests/fakes/test_run.h"

namespace atl {
namespace {

HubCommit commit_of(TestRun& run) {
  HubCommit commit;
  commit.round = OuterStep{7};
  commit.attempt = Attempt{2};
  commit.digest = std::string(64, 'd');
  commit.outer_learning_rate = 0.7;
  commit.outer_momentum = 0.9;
  commit.members = {{TestRun::island_id(1), {}, 64}, {TestRun::island_id(2), {}, 32}};
  commit.signature = sign_commit(run.hub(), commit).value();
  return commit;
}

}  // namespace

class CommitSignatureTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void the_hubs_commit_verifies_on_an_island() {
    QVERIFY(verify_commit(run_.island(1), run_.hub().certificate_pem, commit_of(run_)).ok());
  }

  void a_commit_that_was_changed_does_not_verify_data() {
    QTest::addColumn<int>("field");
    int field = 0;
    for (const char* name :
         {"round", "attempt", "digest", "learning rate", "momentum", "tokens", "members", "signature"}) {
      QTest::newRow(name) << field++;
    }
  }
  void a_commit_that_was_changed_does_not_verify() {
    QFETCH(int, field);
    HubCommit commit = commit_of(run_);
    switch (field) {
      case 0: commit.round = OuterStep{8}; break;
      case 1: commit.attempt = Attempt{3}; break;
      case 2: commit.digest[0] = 'e'; break;
      case 3: commit.outer_learning_rate = 0.70000000000000007; break;
      case 4: commit.outer_momentum = 0; break;
      case 5: commit.members[1].tokens = 33; break;
      case 6: commit.members.pop_back(); break;
      default: commit.signature.clear();
    }

    const Status verified = verify_commit(run_.island(1), run_.hub().certificate_pem, commit);

    QCOMPARE(verified.error().code, ErrorCode::kCorrupt);
    QVERIFY(verified.error().message.find("commit of round") != std::string::npos);
  }

  void what_an_island_or_another_runs_hub_signed_does_not_verify() {
    TestRun other("fedcba9876543210");
    HubCommit by_island = commit_of(run_);
    by_island.signature = sign_commit(run_.island(2), by_island).value();

    QVERIFY(!verify_commit(run_.island(1), run_.island(2).certificate_pem, by_island).ok());
    QVERIFY(!verify_commit(run_.island(1), run_.hub().certificate_pem, by_island).ok());
    QVERIFY(!verify_commit(run_.island(1), other.hub().certificate_pem, commit_of(other)).ok());
  }

 private:
  TestRun run_;
};

}  // namespace atl

QTEST_GUILESS_MAIN(atl::CommitSignatureTest)
#include "commit_signature_test.moc"
