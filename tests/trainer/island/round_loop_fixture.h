// A round loop whose engine is real and tiny, and whose network and data a test makes up. One thread, the test's.
#pragma once

#include <QtTest/QTest>
#include <deque>

#include "trainer/checkpoint/huggingface.h"
#include "trainer/island/round_loop.h"

namespace atl::test {

inline constexpr std::uint32_t kInnerSteps = 2;
inline constexpr std::uint32_t kLength = 8;

inline ModelConfig tiny_model() {
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
  void publish(StateNews) override {}

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

struct RoundLoopFixture {
  explicit RoundLoopFixture(const RunConfig& run = run_config(), const EngineOptions& options = {})
      : engine(std::move(*Engine::create(tiny_model(), options))),
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
  void train_first_round() {
    must(loop.handle(HubInitialise{}));
    begin_round(0);
    train();
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

}  // namespace atl::test
