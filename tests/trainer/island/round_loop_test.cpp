#include "trainer/island/round_loop.h"

#include <QtTest/QTest>
#include <deque>

#include "trainer/checkpoint/huggingface.h"

using namespace atl;

namespace {

constexpr std::uint32_t kInnerSteps = 2;
constexpr std::uint32_t kLength = 8;

ModelConfig tiny_model() {
  ModelConfig config;
  config.vocab_size = 11;
  config.hidden_size = 8;
  config.intermediate_size = 12;
  config.num_hidden_layers = 1;
  config.num_attention_heads = 2;
  config.num_key_value_heads = 1;
  config.head_dim = 4;
  config.max_position_embeddings = 32;
  return config;
}

class FixedBatches final : public BatchSource {
 public:
  Result<TokenBatch> train_batch(OuterStep, std::uint32_t step, const Lease&) override {
    tokens_.assign(2 * (kLength + 1), static_cast<std::int32_t>(step % 11));
    return TokenBatch{tokens_, 2, kLength};
  }
  std::uint32_t validation_batches() const override { return 1; }
  Result<TokenBatch> validation_batch(std::uint32_t index) override { return train_batch({}, index, {}); }

 private:
  std::vector<std::int32_t> tokens_;
};

// Records what is sent; its all-reduce is that of an island alone (fp32), or fails when told to.
class FakeNetwork final : public RoundLoopNetwork {
 public:
  void send(const IslandMessage& message) override { sent.push_back(message); }
  std::variant<AllReduceReport, AllReduceFailure> all_reduce(const AllReduceSpec& spec, std::span<const float> input,
                                                             std::span<std::byte> canonical,
                                                             const AbortSignal& abort) override {
    final_buckets = spec.final_buckets;
    residual.assign(spec.feedback.residual_in.begin(), spec.feedback.residual_in.end());
    found_lost.assign(spec.feedback.residual_out.begin(), spec.feedback.residual_out.end());
    std::ranges::fill(spec.feedback.residual_out, loses);
    found.assign(canonical.begin(), canonical.end());
    if (abort.raised()) return AllReduceFailure{{ErrorCode::kAborted, abort.reason()}, {}};
    if (fail) {
      std::ranges::fill(canonical, kOfFailedAttempt);
      return AllReduceFailure{{ErrorCode::kPeerLost, "lost"}, spec.order.back().id, whole_buckets};
    }
    const auto raw = std::as_bytes(input);
    std::copy(raw.begin(), raw.end(), canonical.begin());
    dials_previous = spec.order.back().dials_previous;
    AllReduceReport report{.digest = sha256(canonical), .bytes_sent = bytes_sent, .bytes_received = 7};
    report.next = spec.order.back().id;
    report.link_bytes_per_second = 1e6;
    report.rtt_seconds = 0.25;
    report.at_least = false;
    return report;
  }
  Result<FetchedState> fetch(const HubRecover&) override {
    if (!fetched) return Error{ErrorCode::kNotFound, "no source"};
    return *fetched;
  }
  Result<std::vector<float>> initial_parameters() override { return initial; }
  void publish(const char*) override {}

  template <class Message>
  const Message& last() const {
    return std::get<Message>(sent.back());
  }

  std::deque<IslandMessage> sent;
  std::vector<float> initial;
  std::optional<FetchedState> fetched;
  std::uint64_t bytes_sent = 7;
  bool dials_previous = false;  // as the last all-reduce was told of its last member
  bool fail = false;
  std::vector<bool> whole_buckets;  // of all-reduces that fail
  // Of the last all-reduce: what it was told to leave, and what lay in the room for the result.
  std::vector<bool> final_buckets;
  Bytes found;
  // Error feedback: what the last all-reduce was given, what it found in the room for its own losses, what it loses.
  std::vector<float> residual, found_lost;
  float loses = 0;

  static constexpr std::byte kOfFailedAttempt{0xaa};
};

}  // namespace

class RoundLoopTest : public QObject {
  Q_OBJECT

  struct Fixture {
    explicit Fixture(const RunConfig& run = run_config())
        : engine(std::move(*Engine::create(tiny_model(), {}))),
          outer(engine->numel()),
          status(IslandState{}),
          loop(run, *engine, batches, outer, gate, status, network, stop) {
      network.initial.resize(static_cast<std::size_t>(engine->numel()));
      engine->read_parameters(network.initial);
    }
    static const RunConfig& int4_run() {
      static const RunConfig run = [] {
        RunConfig config = run_config();
        config.wire = WireFormat::kInt4E3m0;
        return config;
      }();
      return run;
    }
    void commit_round(std::uint32_t round) {
      begin_round(round);
      train();
      must(loop.handle(attempt(round, 1)));
      must(loop.handle(commit(round, 1, network.last<IslandHave>().digest)));
    }
    static const RunConfig& run_config() {
      static const RunConfig run = [] {
        RunConfig config;
        config.run_id = "0123456789abcdef";
        config.inner_steps = kInnerSteps;
        config.sequences_per_step = 2;
        config.sequence_length = kLength;
        config.wire = WireFormat::kFp32;
        return config;
      }();
      return run;
    }
    void must(Status status_of_call) {
      QVERIFY2(status_of_call.ok(), status_of_call.ok() ? "" : status_of_call.error().message.c_str());
    }
    void begin_round(std::uint32_t round, std::uint32_t inner_steps = kInnerSteps, bool validate = false) {
      must(loop.handle(HubRoundBegin{OuterStep{round}, inner_steps, round * 4, 4, validate}));
    }
    void train() {
      while (loop.has_work()) must(loop.work());
    }
    HubAttempt attempt(std::uint32_t round, std::uint32_t number) const {
      HubAttempt message{OuterStep{round}, Attempt{number}, {{IslandId{"isl-0000000000000000"}, {"127.0.0.1", 1}, 32}}};
      message.wire = WireFormat::kFp32;  // what the fake averages in, whatever the run's format
      return message;
    }
    HubCommit commit(std::uint32_t round, std::uint32_t number, const std::string& digest) const {
      HubCommit message;
      message.round = OuterStep{round};
      message.attempt = Attempt{number};
      message.digest = digest;
      message.outer_learning_rate = 0.7;
      message.outer_momentum = 0.9;
      return message;
    }

    std::unique_ptr<Engine> engine;
    FixedBatches batches;
    OuterStateStore outer;
    AttemptGate gate;
    IslandStatus status;
    FakeNetwork network;
    AbortSignal stop;
    RoundLoop loop;
  };

 private Q_SLOTS:
  void a_step_that_is_not_finite_is_told_to_the_hub_and_the_island_recovers() {
    Fixture f;
    f.must(f.loop.handle(HubInitialise{}));
    const std::vector<float> good = f.network.initial;
    std::vector<float> broken = good;
    broken[3] = std::numeric_limits<float>::quiet_NaN();
    f.begin_round(0);
    f.engine->write_parameters(broken);

    f.train();

    QVERIFY(std::isnan(f.network.last<IslandReady>().norm_over_steps));
    QVERIFY(!f.loop.has_work());
    f.must(f.loop.handle(HubRecover{OuterStep{0}, f.outer.tree_hash(), {}}));
    std::vector<float> parameters(good.size());
    f.engine->read_parameters(parameters);
    QVERIFY(parameters == good);
  }

  void a_round_goes_from_initialise_to_the_outer_step() {
    Fixture f;
    f.must(f.loop.handle(HubInitialise{}));
    QCOMPARE(f.network.last<IslandRecovered>().outer_step.value, 0u);

    f.begin_round(0);
    f.train();
    QCOMPARE(f.network.last<IslandReady>().tokens, std::uint64_t{kInnerSteps * 2 * kLength});
    QVERIFY(f.network.last<IslandReady>().norm_over_steps > 0);
    f.must(f.loop.handle(f.attempt(0, 1)));
    const std::string digest = f.network.last<IslandHave>().digest;
    f.must(f.loop.handle(f.commit(0, 1, digest)));

    QCOMPARE(f.network.last<IslandApplied>().outer_step.value, 1u);
    QCOMPARE(f.network.last<IslandApplied>().state_hash, f.outer.tree_hash());
    std::vector<float> inner(static_cast<std::size_t>(f.engine->numel()));
    f.engine->read_parameters(inner);
    QVERIFY(std::equal(inner.begin(), inner.end(), f.outer.parameters().begin()));
    QCOMPARE(f.status.snapshot().accepted_round, std::optional<std::uint32_t>(0));
  }

  void each_step_says_its_learning_rate_and_gradient_norm() {
    Fixture f;
    f.must(f.loop.handle(HubInitialise{}));
    QVERIFY(!f.status.snapshot().learning_rate && !f.status.snapshot().gradient_norm);

    f.begin_round(0);
    f.must(f.loop.work());

    const IslandState state = f.status.snapshot();
    QVERIFY(state.learning_rate && *state.learning_rate >= 0 && *state.learning_rate <= 3e-3);
    QVERIFY(state.gradient_norm && *state.gradient_norm > 0 && std::isfinite(*state.gradient_norm));
    QVERIFY(!state.mfu);  // what a processor could do at best is not known
  }

  void interrupted_work_goes_on_to_the_same_bits() {
    Fixture whole, interrupted, resumed;
    for (Fixture* f : {&whole, &interrupted, &resumed}) f->must(f->loop.handle(HubInitialise{}));
    whole.begin_round(0);
    whole.train();
    interrupted.begin_round(0);
    QVERIFY(!interrupted.loop.interrupted_work());  // nothing was done yet
    interrupted.must(interrupted.loop.work());

    resumed.loop.resume_from(*interrupted.loop.interrupted_work());
    resumed.begin_round(0);
    QCOMPARE(resumed.status.snapshot().inner_step, 1u);
    resumed.train();

    const auto& expected = whole.network.last<IslandReady>();
    const auto& ready = resumed.network.last<IslandReady>();
    QCOMPARE(ready.tokens, expected.tokens);
    QCOMPARE(ready.norm_over_steps, expected.norm_over_steps);
    QCOMPARE(ready.mean_loss_nats, expected.mean_loss_nats);
    std::vector<float> a(whole.network.initial.size()), b(a.size());
    whole.engine->read_parameters(a);
    resumed.engine->read_parameters(b);
    QVERIFY(a == b);
  }

  void interrupted_work_of_another_lease_is_dropped() {
    Fixture interrupted, resumed;
    for (Fixture* f : {&interrupted, &resumed}) f->must(f->loop.handle(HubInitialise{}));
    interrupted.begin_round(0);
    interrupted.must(interrupted.loop.work());

    resumed.loop.resume_from(*interrupted.loop.interrupted_work());
    resumed.must(resumed.loop.handle(HubRoundBegin{OuterStep{0}, kInnerSteps, 400, 4, false}));

    QCOMPARE(resumed.status.snapshot().inner_step, 0u);
    std::vector<float> parameters(resumed.network.initial.size());
    resumed.engine->read_parameters(parameters);
    QVERIFY(parameters == resumed.network.initial);
  }

  void a_failed_attempt_names_the_peer_and_the_next_one_averages_the_same_gradient() {
    Fixture f;
    f.must(f.loop.handle(HubInitialise{}));
    f.begin_round(0);
    f.train();

    f.network.fail = true;
    f.must(f.loop.handle(f.attempt(0, 1)));
    QCOMPARE(f.network.last<IslandAttemptFailed>().peer->value, std::string("isl-0000000000000000"));
    f.network.fail = false;
    f.must(f.loop.handle(f.attempt(0, 2)));

    QCOMPARE(f.network.last<IslandHave>().attempt.value, 2u);
    f.must(f.loop.handle(f.commit(0, 2, f.network.last<IslandHave>().digest)));
    QCOMPARE(f.outer.version().value, 1u);
  }

  void buckets_that_are_whole_after_a_failure_are_told_and_stay_for_the_next_attempt() {
    Fixture f;
    f.must(f.loop.handle(HubInitialise{}));
    f.begin_round(0);
    f.train();
    f.network.fail = true;
    f.network.whole_buckets = {true, false, true};
    f.must(f.loop.handle(f.attempt(0, 1)));
    QCOMPARE(f.network.last<IslandAttemptFailed>().whole_buckets, f.network.whole_buckets);

    f.network.fail = false;
    HubAttempt next = f.attempt(0, 2);
    next.final_buckets = {true, false, false};  // another member held fewer
    f.must(f.loop.handle(next));

    QCOMPARE(f.network.final_buckets, next.final_buckets);
    QVERIFY(!f.network.found.empty());
    QVERIFY(std::ranges::all_of(f.network.found, [](std::byte b) { return b == FakeNetwork::kOfFailedAttempt; }));
    QCOMPARE(f.network.last<IslandHave>().attempt.value, 2u);
  }

  void an_attempt_that_fails_before_a_byte_moved_keeps_what_was_kept_before() {
    Fixture f;
    f.must(f.loop.handle(HubInitialise{}));
    f.begin_round(0);
    f.train();
    f.network.fail = true;
    f.network.whole_buckets = {true, false};
    f.must(f.loop.handle(f.attempt(0, 1)));
    f.network.whole_buckets.clear();  // no edge stood
    HubAttempt next = f.attempt(0, 2);
    next.final_buckets = {true, false};

    f.must(f.loop.handle(next));

    QCOMPARE(f.network.last<IslandAttemptFailed>().whole_buckets, next.final_buckets);
  }

  void buckets_that_are_not_held_are_not_averaged_around_data() {
    QTest::addColumn<std::vector<bool>>("kept");
    QTest::addColumn<std::uint32_t>("attempt");
    QTest::newRow("another bucket") << std::vector<bool>{false, true} << 2u;
    QTest::newRow("of another model") << std::vector<bool>{true} << 2u;
    QTest::newRow("of an attempt in between") << std::vector<bool>{true, false} << 3u;
  }
  void buckets_that_are_not_held_are_not_averaged_around() {
    QFETCH(std::vector<bool>, kept);
    QFETCH(std::uint32_t, attempt);
    Fixture f;
    f.must(f.loop.handle(HubInitialise{}));
    f.begin_round(0);
    f.train();
    f.network.fail = true;
    f.network.whole_buckets = {true, false};
    f.must(f.loop.handle(f.attempt(0, 1)));
    f.network.fail = false;
    HubAttempt next = f.attempt(0, attempt);
    next.final_buckets = kept;

    f.must(f.loop.handle(next));

    QCOMPARE(f.network.last<IslandAttemptFailed>().attempt.value, attempt);
    QVERIFY(f.network.last<IslandAttemptFailed>().whole_buckets.empty());
    QVERIFY(!f.network.last<IslandAttemptFailed>().peer.has_value());
  }

  void an_average_whose_attempt_is_aborted_is_told_as_whole_and_stays() {
    Fixture f;
    f.must(f.loop.handle(HubInitialise{}));
    f.begin_round(0);
    f.train();
    f.must(f.loop.handle(f.attempt(0, 1)));
    const std::string digest = f.network.last<IslandHave>().digest;

    f.must(f.loop.handle(HubAbort{OuterStep{0}, Attempt{1}, "isl-2 failed"}));

    QCOMPARE(f.network.last<IslandAttemptFailed>().whole_buckets, std::vector<bool>{true});
    HubAttempt next = f.attempt(0, 2);
    next.final_buckets = {true};
    f.must(f.loop.handle(next));
    QVERIFY(to_hex(sha256(f.network.found)) == digest);
  }

  void what_a_committed_round_lost_is_sent_with_the_next() {
    Fixture f(Fixture::int4_run());
    const auto all = [&](const std::vector<float>& values, float expected) {
      return values == std::vector<float>(static_cast<std::size_t>(f.engine->numel()), expected);
    };
    f.must(f.loop.handle(HubInitialise{}));
    f.network.loses = 0.5f;
    f.commit_round(0);
    QVERIFY(all(f.network.residual, 0.0f));

    f.network.loses = 0.25f;
    f.begin_round(1);
    f.train();
    f.must(f.loop.handle(f.attempt(1, 1)));
    QVERIFY(all(f.network.residual, 0.5f));
    f.must(f.loop.handle(HubAbort{OuterStep{1}, Attempt{1}, "isl-2 failed"}));
    f.must(f.loop.handle(f.attempt(1, 2)));

    QVERIFY(all(f.network.residual, 0.5f));     // not paid back by an attempt that came to nothing
    QVERIFY(all(f.network.found_lost, 0.25f));  // of buckets that stay, the attempt before has told it
    f.must(f.loop.handle(f.commit(1, 2, f.network.last<IslandHave>().digest)));
    f.commit_round(2);
    QVERIFY(all(f.network.residual, 0.25f));
  }

  void nothing_is_owed_after_a_recovery_nor_in_formats_that_lose_little() {
    Fixture f(Fixture::int4_run());
    f.must(f.loop.handle(HubInitialise{}));
    f.network.loses = 0.5f;
    f.commit_round(0);
    f.network.fetched = FetchedState{OuterStep{5}, f.network.initial, std::vector<float>(f.network.initial.size())};

    f.must(f.loop.handle(HubRecover{OuterStep{5}, "hash", {}}));
    f.commit_round(5);

    QVERIFY(f.network.residual == std::vector<float>(static_cast<std::size_t>(f.engine->numel()), 0.0f));
    Fixture whole;
    whole.must(whole.loop.handle(HubInitialise{}));
    whole.commit_round(0);
    QVERIFY(whole.network.residual.empty());
  }

  void an_average_is_taken_in_the_format_of_its_attempt() {
    Fixture f(Fixture::int4_run());
    Fixture same;
    for (Fixture* each : {&f, &same}) {
      each->network.initial.assign(each->network.initial.size(), 0.125f);
      each->must(each->loop.handle(HubInitialise{}));
      each->commit_round(0);
    }

    QCOMPARE(f.outer.version().value, 1u);
    QCOMPARE(f.outer.tree_hash(), same.outer.tree_hash());
  }

  void buckets_of_another_format_are_not_averaged_around() {
    Fixture f(Fixture::int4_run());
    f.must(f.loop.handle(HubInitialise{}));
    f.begin_round(0);
    f.train();
    f.network.fail = true;
    f.network.whole_buckets = {true, false};
    f.must(f.loop.handle(f.attempt(0, 1)));
    HubAttempt next = f.attempt(0, 2);
    next.wire = WireFormat::kInt8Block;
    next.final_buckets = {true, false};

    f.must(f.loop.handle(next));

    QVERIFY(f.network.last<IslandAttemptFailed>().whole_buckets.empty());
    QVERIFY(!f.network.last<IslandAttemptFailed>().peer.has_value());
  }

  void the_hub_is_told_how_fast_the_link_to_the_next_island_was() {
    Fixture f;
    f.must(f.loop.handle(HubInitialise{}));
    f.begin_round(0);
    f.train();
    f.network.bytes_sent = 64u << 20;

    f.must(f.loop.handle(f.attempt(0, 1)));

    const auto& links = f.network.last<IslandLinkReport>().links;
    QCOMPARE(links.size(), std::size_t{1});
    QCOMPARE(links[0].peer.value, std::string("isl-0000000000000000"));
    QVERIFY(links[0].outgoing && !links[0].at_least);
    QCOMPARE(links[0].bytes_per_second, 1e6);
    QCOMPARE(links[0].rtt_seconds, 0.25);
  }

  void who_dials_an_edge_is_told_to_the_ring() {
    Fixture f;
    f.must(f.loop.handle(HubInitialise{}));
    f.begin_round(0);
    f.train();
    HubAttempt attempt = f.attempt(0, 1);
    attempt.order.back().dials_previous = true;

    f.must(f.loop.handle(attempt));

    QVERIFY(f.network.dials_previous);
    f.network.last<IslandHave>();  // and no report of a link over which nearly nothing went
  }

  void a_commit_of_an_average_that_is_not_held_is_never_applied() {
    Fixture f;
    f.must(f.loop.handle(HubInitialise{}));
    f.begin_round(0);
    f.train();
    f.must(f.loop.handle(f.attempt(0, 1)));

    f.must(f.loop.handle(f.commit(0, 1, std::string(64, '0'))));

    QCOMPARE(f.network.last<IslandAttemptFailed>().attempt.value, 1u);
    QCOMPARE(f.outer.version().value, 0u);
  }

  void an_abort_drops_the_average_of_its_attempt() {
    Fixture f;
    f.must(f.loop.handle(HubInitialise{}));
    f.begin_round(0);
    f.train();
    f.must(f.loop.handle(f.attempt(0, 1)));
    const std::string digest = f.network.last<IslandHave>().digest;

    f.must(f.loop.handle(HubAbort{OuterStep{0}, Attempt{1}, "isl-2 is gone"}));

    f.must(f.loop.handle(f.commit(0, 1, digest)));

    QCOMPARE(f.network.last<IslandAttemptFailed>().round.value, 0u);
    QCOMPARE(f.outer.version().value, 0u);
  }

  void a_joiner_takes_part_with_no_weight_in_the_round_that_is_open() {
    Fixture f;
    FetchedState state;
    state.version = OuterStep{5};
    state.parameters = f.network.initial;
    state.momentum.assign(state.parameters.size(), 0.25f);
    f.network.fetched = state;

    f.must(f.loop.handle(HubRecover{OuterStep{5}, "hash", {}}));
    QCOMPARE(f.network.last<IslandRecovered>().outer_step.value, 5u);
    f.begin_round(5, 0);

    QCOMPARE(f.network.last<IslandReady>().tokens, std::uint64_t{0});
    QCOMPARE(f.network.last<IslandReady>().norm_over_steps, 0.0);
    f.must(f.loop.handle(f.attempt(5, 1)));
    f.must(f.loop.handle(f.commit(5, 1, f.network.last<IslandHave>().digest)));
    QCOMPARE(f.outer.version().value, 6u);
    QVERIFY(!f.status.snapshot().accepted_round.has_value());
  }

  void a_recovery_without_a_source_is_tried_again() {
    Fixture f;
    f.must(f.loop.handle(HubRecover{OuterStep{5}, "hash", {}}));
    QVERIFY(f.network.sent.empty());
    QVERIFY(!f.outer.holds_state());

    f.network.fetched = FetchedState{OuterStep{5}, f.network.initial, std::vector<float>(f.network.initial.size())};
    f.must(f.loop.handle(HubRecover{OuterStep{5}, "hash", {}}));

    QCOMPARE(f.network.last<IslandRecovered>().outer_step.value, 5u);
  }

  void a_round_that_does_not_fit_the_state_is_refused() {
    Fixture f;
    f.must(f.loop.handle(HubInitialise{}));

    const Status status = f.loop.handle(HubRoundBegin{OuterStep{7}, kInnerSteps, 0, 4, false});

    QCOMPARE(status.error().code, ErrorCode::kProtocol);
  }

  void validation_is_of_the_outer_parameters_before_the_first_inner_step() {
    Fixture f;
    f.must(f.loop.handle(HubInitialise{}));
    f.begin_round(0, kInnerSteps, true);

    const auto& validation = f.network.last<IslandValidation>();
    QCOMPARE(validation.outer_step.value, 0u);
    QVERIFY(validation.loss_nats > 0);
    QVERIFY(f.loop.has_work());
  }

  void what_was_said_before_a_reconnection_is_said_again_when_asked() {
    Fixture f;
    f.must(f.loop.handle(HubInitialise{}));
    f.begin_round(0);
    f.train();
    f.network.sent.clear();

    f.begin_round(0);  // the same lease
    QCOMPARE(f.network.last<IslandReady>().round.value, 0u);
    f.must(f.loop.handle(f.attempt(0, 1)));
    const std::string digest = f.network.last<IslandHave>().digest;
    f.must(f.loop.handle(f.attempt(0, 1)));
    QCOMPARE(f.network.last<IslandHave>().digest, digest);
    f.must(f.loop.handle(f.commit(0, 1, digest)));
    f.must(f.loop.handle(f.commit(0, 1, digest)));

    QCOMPARE(f.outer.version().value, 1u);
    QCOMPARE(f.network.last<IslandApplied>().outer_step.value, 1u);
  }

  void a_goodbye_ends_the_loop_with_the_hubs_words() {
    Fixture f;
    QVERIFY(!f.loop.finished());

    const Status refused = f.loop.handle(HubGoodbye{ErrorCode::kVersionUnsupported, "update Atoll", false});

    QVERIFY(f.loop.finished());
    QCOMPARE(refused.error().message, std::string("update Atoll"));
    QVERIFY(Fixture().loop.handle(HubGoodbye{ErrorCode::kAborted, "", true}).ok());
  }
};

QTEST_GUILESS_MAIN(RoundLoopTest)
#include "round_loop_test.moc"
