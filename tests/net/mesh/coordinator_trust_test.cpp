// What an island's word is worth: about the outer state, the average, norms and validations.
#include <QtTest>

#include "net/mesh/attempt.h"
#include "tests/net/mesh/coordinator_script.h"

namespace atl {
namespace {

const std::string kLie(64, 'e');

// Islands 1..n commit round 0 and nobody has taken the outer step yet.
void commit_first_round(SimulatedMesh& mesh, int islands, int liar = 0) {
  begin_first_round(mesh, islands);
  if (liar > 0) mesh.island(liar).lies.state_hash = true;
  all_ready(mesh, islands);
  for (int i = 1; i <= islands; ++i) have(mesh, i, 1);
}

std::string honest_hash() { return fake_sha256(fake_sha256("initial") + kDigest); }

Standstill::Kind kind(const SimulatedMesh& mesh) { return const_cast<SimulatedMesh&>(mesh).hub().standstill()->kind; }

}  // namespace

class CoordinatorTrustTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void a_liar_that_is_first_after_a_crash_of_the_hub_is_not_believed();
  void a_liar_that_says_hello_first_at_step_0_stops_nobody();
  void with_two_islands_a_false_state_is_a_named_standstill();
  void removing_one_of_two_that_disagree_lets_the_other_go_on();
  void receivers_have_no_vote_on_the_state();
  void where_every_trainer_was_removed_the_receivers_decide();
  void a_dead_voter_cannot_be_outvoted_by_one_that_is_alone();
  void with_two_islands_a_false_digest_is_a_named_standstill_and_evicts_nobody();
  void a_third_island_settles_what_two_cannot();
  void altered_bytes_for_half_of_the_ring_cost_an_end_of_the_bad_edge_its_round();
  void who_alters_bytes_on_two_edges_is_found();
  void a_norm_far_above_the_others_is_left_out_and_its_owner_is_told();
  void whose_work_is_left_out_three_rounds_in_a_row_is_sent_away();
  void one_liar_cannot_make_an_honest_norm_look_large();
  void an_average_larger_than_its_parts_is_averaged_without_one_until_it_fits();
  void only_the_validator_of_the_round_is_heard_once();
  void a_high_validation_loss_is_believed_when_more_than_half_find_it();
  void a_loss_far_too_low_is_no_measure_for_others();
  void who_hides_its_bytes_does_not_get_its_victim_sent_away();
  void fewer_trainers_than_the_quorum_commit_nothing();
};

void CoordinatorTrustTest::a_liar_that_is_first_after_a_crash_of_the_hub_is_not_believed() {
  SimulatedMesh mesh(run_for(4));
  mesh.keeps_states = true;
  commit_first_round(mesh, 4);  // on disk, and nobody's hash yet
  mesh.restart_hub();
  mesh.island(4).outer_step = OuterStep{1};
  mesh.island(4).state_hash = kLie;

  mesh.link(4);
  deliver(mesh);
  mesh.pass(7s);  // the others take longer than the hub waits for them
  for (int i = 1; i <= 3; ++i) {
    mesh.link(i);
    deliver(mesh);
  }

  for (int i = 1; i <= 3; ++i) {
    QCOMPARE(mesh.island(i).state_hash, honest_hash());
    QVERIFY(received<HubRecover>(mesh.island(i)).empty());
  }
  QCOMPARE(received<HubRecover>(mesh.island(4)).back().state_hash, honest_hash());
  QCOMPARE(QString::fromStdString(mesh.violation()), QString());
}

void CoordinatorTrustTest::a_liar_that_says_hello_first_at_step_0_stops_nobody() {
  SimulatedMesh mesh(run_for(2));
  mesh.island(3).outer_step = OuterStep{0};
  mesh.island(3).state_hash = kLie;
  mesh.link(3);
  mesh.start(1);
  mesh.start(2);

  mesh.settle();

  QVERIFY(mesh.commits().size() > 2);
  for (int i = 1; i <= 2; ++i) QVERIFY(!mesh.island(i).goodbye.has_value());
  QCOMPARE(QString::fromStdString(mesh.violation()), QString());
}

void CoordinatorTrustTest::with_two_islands_a_false_state_is_a_named_standstill() {
  SimulatedMesh mesh(run_for(2));
  commit_first_round(mesh, 2, 2);
  mesh.trains_by_itself = false;
  mesh.settle();

  mesh.pass(1s);
  deliver(mesh);

  QVERIFY(mesh.hub().standstill().has_value());
  QCOMPARE(kind(mesh), Standstill::Kind::kSplitState);
  QVERIFY(mesh.hub().standstill()->text.find("atoll hub remove") != std::string::npos);
  QCOMPARE(mesh.hub().phase(), RoundCoordinator::Phase::kStandstill);
  for (int i = 1; i <= 2; ++i) {
    QVERIFY(received<HubRecover>(mesh.island(i)).empty());
    QVERIFY(!mesh.island(i).goodbye.has_value());
    QCOMPARE(received<HubNotice>(mesh.island(i)).back().text, mesh.hub().standstill()->text);
  }
  all_ready(mesh, 2);
  QVERIFY(received<HubAttempt>(mesh.island(1)).back().round == OuterStep{0});  // nothing goes on upon it
}

void CoordinatorTrustTest::removing_one_of_two_that_disagree_lets_the_other_go_on() {
  SimulatedMesh mesh(run_for(2));
  commit_first_round(mesh, 2, 2);
  deliver(mesh);
  QVERIFY(mesh.hub().standstill().has_value());

  mesh.remove(2);
  mesh.tick();

  QVERIFY(!mesh.hub().standstill().has_value());
  mesh.settle();
  QVERIFY(mesh.commits().size() > 2);
  QCOMPARE(received<HubNotice>(mesh.island(1)).back().text, std::string());
  QCOMPARE(QString::fromStdString(mesh.violation()), QString());
}

void CoordinatorTrustTest::receivers_have_no_vote_on_the_state() {
  SimulatedMesh mesh(run_for(1));
  begin_first_round(mesh, 1);
  mesh.pass(61s);
  for (int i = 2; i <= 4; ++i) {
    mesh.island(i).lies.state_hash = true;  // so many of them that they would win
    mesh.island(i).lies.step = false;
    mesh.start(i);
    mesh.island(i).lies.state_hash = false;
    deliver(mesh);
    mesh.island(i).lies.state_hash = true;
    mesh.say(i, IslandReady{OuterStep{0}, 0, 0, 0});
  }
  all_ready(mesh, 1);
  for (int i = 1; i <= 4; ++i) have(mesh, i, 1);

  deliver(mesh);

  QCOMPARE(mesh.hub().committed(), OuterStep{1});
  QCOMPARE(QString::fromStdString(mesh.violation()), QString());
  QCOMPARE(received<HubRecover>(mesh.island(2)).back().state_hash, honest_hash());
  QVERIFY(received<HubRecover>(mesh.island(1)).empty());
}

void CoordinatorTrustTest::where_every_trainer_was_removed_the_receivers_decide() {
  SimulatedMesh mesh(run_for(1));
  begin_first_round(mesh, 1);
  mesh.start(2);
  deliver(mesh);
  mesh.say(2, IslandReady{OuterStep{0}, 0, 0, 0});
  all_ready(mesh, 1);
  for (int i = 1; i <= 2; ++i) have(mesh, i, 1);

  mesh.remove(1);
  mesh.settle();

  QVERIFY(!mesh.hub().standstill().has_value());
  QVERIFY(mesh.commits().size() > 2);
  QCOMPARE(QString::fromStdString(mesh.violation()), QString());
}

void CoordinatorTrustTest::a_dead_voter_cannot_be_outvoted_by_one_that_is_alone() {
  SimulatedMesh mesh(run_for(2));
  commit_first_round(mesh, 2, 2);
  mesh.kill(1);
  deliver(mesh);

  for (int i = 0; i < 70; ++i) mesh.pass(1s);
  deliver(mesh);

  QCOMPARE(kind(mesh), Standstill::Kind::kUndecided);
  QVERIFY(mesh.hub().standstill()->text.find("isl-1") != std::string::npos);
  QCOMPARE(mesh.hub().standstill()->back_to, std::optional(OuterStep{0}));
  mesh.roll_back(OuterStep{0});
  mesh.start(1);
  mesh.island(2).lies = {};
  mesh.settle();
  QVERIFY(mesh.commits().size() > 2);
  QVERIFY(!mesh.hub().standstill().has_value());
  QCOMPARE(QString::fromStdString(mesh.violation()), QString());
}

void CoordinatorTrustTest::with_two_islands_a_false_digest_is_a_named_standstill_and_evicts_nobody() {
  SimulatedMesh mesh(run_for(2));
  mesh.island(2).lies.digest = true;
  mesh.start(1);
  mesh.start(2);

  for (int i = 0; i < 30; ++i) {
    mesh.settle();
    mesh.pass(1s);
  }

  QCOMPARE(mesh.hub().committed(), OuterStep{0});
  QCOMPARE(kind(mesh), Standstill::Kind::kSplitAverage);
  QVERIFY(mesh.hub().standstill()->text.find("different averages") != std::string::npos);
  for (int i = 1; i <= 2; ++i) QVERIFY(!mesh.island(i).goodbye.has_value());
}

void CoordinatorTrustTest::a_third_island_settles_what_two_cannot() {
  SimulatedMesh mesh(run_for(2));
  mesh.island(2).lies.digest = true;
  mesh.start(1);
  mesh.start(2);
  for (int i = 0; i < 30; ++i) {
    mesh.settle();
    mesh.pass(1s);
  }
  QVERIFY(mesh.hub().standstill().has_value());

  mesh.start(3);
  for (int i = 0; i < 60 && mesh.commits().empty(); ++i) {
    mesh.settle();
    mesh.pass(1s);
  }

  for (const IslandId& holder : mesh.commits().at(0).holders) QVERIFY(holder != mesh.island(2).id);
  QVERIFY(!mesh.hub().standstill().has_value());
}

void CoordinatorTrustTest::altered_bytes_for_half_of_the_ring_cost_an_end_of_the_bad_edge_its_round() {
  SimulatedMesh mesh(run_for(4));
  mesh.island(2).lies.bytes = true;
  for (int i = 1; i <= 4; ++i) mesh.start(i);

  for (int i = 0; i < 60 && mesh.commits().empty(); ++i) {
    mesh.settle_once();
    if (i % 8 == 7) mesh.pass(1s);
  }
  for (int i = 0; i < 60 && mesh.commits().size() < 8; ++i) {
    mesh.settle();
    mesh.pass(1s);
  }

  QVERIFY(mesh.commits().size() >= 8);
  for (const int honest : {1, 3, 4}) QVERIFY(!mesh.island(honest).goodbye.has_value());
  QCOMPARE(QString::fromStdString(mesh.violation()), QString());
}

void CoordinatorTrustTest::who_alters_bytes_on_two_edges_is_found() {
  const std::vector<AttemptMember> order = {
      {IslandId{"a"}, {}, 1}, {IslandId{"b"}, {}, 1}, {IslandId{"c"}, {}, 1}, {IslandId{"d"}, {}, 1}};
  const std::string good(64, '0'), bad(64, '1');
  DigestInquiry inquiry(Attempt{1}, order, {IslandId{"a"}, IslandId{"b"}, IslandId{"c"}, IslandId{"d"}});
  // Chunk 1 is owned by a; b passes it on altered.
  inquiry.answer(IslandId{"a"}, {good, good, good, good});
  inquiry.answer(IslandId{"b"}, {good, good, good, good});
  inquiry.answer(IslandId{"c"}, {good, bad, good, good});
  QVERIFY(!inquiry.complete());
  inquiry.answer(IslandId{"d"}, {good, bad, good, good});

  QVERIFY(inquiry.complete());
  QCOMPARE(inquiry.bad_edges(), (std::set<IslandPair>{{IslandId{"b"}, IslandId{"c"}}}));
  BadEdges edges;
  edges.add(inquiry.bad_edges());
  QVERIFY(!edges.culprit().has_value());
  edges.add({{IslandId{"a"}, IslandId{"b"}}});
  QCOMPARE(edges.culprit(), std::optional(IslandId{"b"}));
  edges.forget(IslandId{"a"});
  QVERIFY(!edges.culprit().has_value());
}

void CoordinatorTrustTest::a_norm_far_above_the_others_is_left_out_and_its_owner_is_told() {
  SimulatedMesh mesh(run_for(3));
  begin_first_round(mesh, 3);
  mesh.say(1, ready_for(0));
  mesh.say(2, ready_for(0));
  mesh.say(3, IslandReady{OuterStep{0}, 64, 15, 2.0});
  deliver(mesh);

  const auto attempt = received<HubAttempt>(mesh.island(1)).at(0);
  QCOMPARE(attempt.order.size(), std::size_t{2});
  QVERIFY(attempt.norm_limit > 0);
  QVERIFY(received<HubNotice>(mesh.island(3)).back().text.find("norm") != std::string::npos);
  have(mesh, 1, 1);
  have(mesh, 2, 1);
  deliver(mesh);
  QCOMPARE(mesh.hub().committed(), OuterStep{1});
  QCOMPARE(received<HubRecover>(mesh.island(3)).size(), std::size_t{1});
}

void CoordinatorTrustTest::whose_work_is_left_out_three_rounds_in_a_row_is_sent_away() {
  SimulatedMesh mesh(run_for(3));
  mesh.island(3).lies.norm = true;
  for (int i = 1; i <= 3; ++i) mesh.start(i);

  for (int i = 0; i < 40 && !mesh.island(3).goodbye; ++i) mesh.settle();

  QVERIFY(mesh.island(3).goodbye.has_value());
  QVERIFY(mesh.commits().size() >= 2);
  for (const HubCommit& commit : mesh.commits()) {
    for (const AttemptMember& member : commit.members) {
      QVERIFY(member.id != mesh.island(3).id || member.tokens == 0);
    }
  }
}

void CoordinatorTrustTest::one_liar_cannot_make_an_honest_norm_look_large() {
  SimulatedMesh mesh(run_for(2));
  begin_first_round(mesh, 2);
  mesh.say(1, ready_for(0));
  mesh.say(2, IslandReady{OuterStep{0}, 64, 1e-9, 2.0});
  deliver(mesh);

  QCOMPARE(received<HubAttempt>(mesh.island(1)).at(0).order.size(), std::size_t{2});
  QCOMPARE(mesh.count<WorkLeftOut>(), 0);
}

void CoordinatorTrustTest::an_average_larger_than_its_parts_is_averaged_without_one_until_it_fits() {
  SimulatedMesh mesh(run_for(3));
  mesh.island(1).lies.hidden_norm = true;
  for (int i = 1; i <= 3; ++i) mesh.start(i);

  for (int i = 0; i < 60 && mesh.commits().empty(); ++i) {
    mesh.settle();
    mesh.pass(1s);
  }

  QVERIFY(!mesh.commits().empty());
  for (const AttemptMember& member : mesh.commits().at(0).members) {
    QVERIFY(member.id != mesh.island(1).id || !trained(member));
  }
  for (const int honest : {2, 3}) QVERIFY(!mesh.island(honest).goodbye.has_value());
}

void CoordinatorTrustTest::only_the_validator_of_the_round_is_heard_once() {
  RunConfig run = run_for(2);
  run.validate_every = 1;
  run.validation_rise = 0;  // else all are asked for the first one
  SimulatedMesh mesh(run);
  begin_first_round(mesh, 2);
  QVERIFY(received<HubRoundBegin>(mesh.island(1)).at(0).validate);

  mesh.say(2, IslandValidation{OuterStep{0}, 0.1});
  mesh.say(1, IslandValidation{OuterStep{7}, 0.1});
  QCOMPARE(mesh.count<IslandValidated>(), 0);
  mesh.say(1, IslandValidation{OuterStep{0}, 5.5});
  mesh.say(1, IslandValidation{OuterStep{0}, 0.1});

  QCOMPARE(mesh.count<IslandValidated>(), 1);
  for (const CoordinatorNews& news : mesh.news()) {
    if (const auto* validated = std::get_if<IslandValidated>(&news)) QCOMPARE(validated->loss_nats, 5.5);
  }
}

void CoordinatorTrustTest::a_high_validation_loss_is_believed_when_more_than_half_find_it() {
  using Outcome = ValidationWatch::Outcome;
  const IslandId a{"a"}, b{"b"}, c{"c"};
  ValidationWatch watch(1.0, {{OuterStep{0}, 5.0}, {OuterStep{5}, 3.5}});
  watch.ask(OuterStep{10}, {a}, false);
  QCOMPARE(watch.report(b, OuterStep{10}, 100), Outcome::kIgnored);
  QCOMPARE(watch.report(a, OuterStep{10}, 168), Outcome::kDoubted);
  QVERIFY(watch.wants_all());

  watch.ask(OuterStep{11}, {a, b, c}, true);
  QCOMPARE(watch.report(a, OuterStep{11}, 168), Outcome::kWaits);
  QCOMPARE(watch.report(b, OuterStep{11}, 3.4), Outcome::kWaits);
  QCOMPARE(watch.report(c, OuterStep{11}, 3.4), Outcome::kGood);  // a lied
  QCOMPARE(watch.result().loss_nats, 3.4);
  QVERIFY(!watch.wants_all());

  watch.ask(OuterStep{15}, {b}, false);
  QCOMPARE(watch.report(b, OuterStep{15}, 168), Outcome::kDoubted);
  watch.ask(OuterStep{16}, {a, b, c}, true);
  QCOMPARE(watch.report(a, OuterStep{16}, 3.0), Outcome::kWaits);
  QCOMPARE(watch.report(b, OuterStep{16}, 170), Outcome::kWaits);
  QCOMPARE(watch.report(c, OuterStep{16}, 171), Outcome::kSpoiled);
  QCOMPARE(watch.newest_good(), std::optional(OuterStep{11}));
}

void CoordinatorTrustTest::a_loss_far_too_low_is_no_measure_for_others() {
  using Outcome = ValidationWatch::Outcome;
  const IslandId a{"a"}, b{"b"}, c{"c"};
  ValidationWatch watch(1.0, {});
  QVERIFY(watch.knows_none());
  watch.ask(OuterStep{0}, {a, b, c}, true);
  for (const IslandId& island : {a, b}) QCOMPARE(watch.report(island, OuterStep{0}, 2.5), Outcome::kWaits);
  QCOMPARE(watch.report(c, OuterStep{0}, 0), Outcome::kGood);
  QCOMPARE(watch.result().loss_nats, 2.5);

  for (std::uint32_t step = 1; step < 30; step += 2) {
    watch.ask(OuterStep{step}, {c}, false);
    QCOMPARE(watch.report(c, OuterStep{step}, step % 3 == 0 ? 0 : 1.6), Outcome::kGood);
    const bool all = watch.wants_all();
    watch.ask(OuterStep{step + 1}, all ? std::set<IslandId>{a, b, c} : std::set<IslandId>{a}, all);
    if (all) QCOMPARE(watch.report(c, OuterStep{step + 1}, 0), Outcome::kWaits);
    if (all) QCOMPARE(watch.report(b, OuterStep{step + 1}, 2.5), Outcome::kWaits);
    QCOMPARE(watch.report(a, OuterStep{step + 1}, 2.5), Outcome::kGood);
    watch.ask(OuterStep{step + 1}, {b}, false);
    QCOMPARE(watch.report(b, OuterStep{step + 1}, 2.5), Outcome::kGood);
  }
}

// 3 alters what it passes on to 1, says the right digest, and shows nothing when all are asked for their bytes.
void CoordinatorTrustTest::who_hides_its_bytes_does_not_get_its_victim_sent_away() {
  SimulatedMesh mesh(run_for(3));
  mesh.trains_by_itself = false;
  for (int i = 1; i <= 3; ++i) mesh.start(i);
  deliver(mesh);
  for (int round = 0; round < 4; ++round) {
    const OuterStep before = mesh.hub().committed();
    all_ready(mesh, 3);
    for (int i = 0; i < 8 && mesh.hub().committed() == before; ++i) {
      const HubAttempt attempt = received<HubAttempt>(mesh.island(2)).back();
      const auto is_in = [&](int island) {
        return std::ranges::any_of(attempt.order, [&](const auto& m) { return m.id == mesh.island(island).id; });
      };
      const std::string right = fake_sha256(std::to_string(before.value));
      for (int island = 1; island <= 3; ++island) {
        const bool is_victim = island == 1 && is_in(3);
        if (is_in(island)) have(mesh, island, attempt.attempt.value, is_victim ? kLie : right);
      }
      for (int island = 1; island <= 2; ++island) {
        mesh.say(island, IslandChunks{before, attempt.attempt, std::vector<std::string>(attempt.order.size(), right)});
      }
      for (int second = 0; second < 8; ++second) mesh.pass(1s);
      deliver(mesh);
    }
    QVERIFY(mesh.hub().committed() > before);
    mesh.pass(1s);
    deliver(mesh);
  }

  QVERIFY(!mesh.island(1).goodbye.has_value());
  QVERIFY(!mesh.island(2).goodbye.has_value());
}

void CoordinatorTrustTest::fewer_trainers_than_the_quorum_commit_nothing() {
  RunConfig run = run_for(2);
  run.quorum = 2;
  SimulatedMesh mesh(run);
  mesh.keeps_states = true;
  mesh.start(1);
  mesh.start(2);
  mesh.settle();
  deliver(mesh);
  mesh.kill(2);
  mesh.pass(7s);
  mesh.settle();
  const std::size_t before = mesh.commits().size();

  for (int i = 0; i < 70; ++i) {
    mesh.settle();
    mesh.pass(1s);
  }

  QCOMPARE(mesh.commits().size(), before);
  QCOMPARE(kind(mesh), Standstill::Kind::kQuorum);
  mesh.start(2);
  for (int i = 0; i < 5; ++i) {
    mesh.settle();
    mesh.pass(1s);
  }
  QVERIFY(mesh.commits().size() > before);
  QVERIFY(!mesh.hub().standstill().has_value());
  QCOMPARE(QString::fromStdString(mesh.violation()), QString());
}

}  // namespace atl

QTEST_GUILESS_MAIN(atl::CoordinatorTrustTest)
#include "coordinator_trust_test.moc"
