// An island's inner loop with its sync lanes, whose engine is real and tiny, and whose network and data a test makes
// up. One thread, the test's: a lane does at once what it is told, unless the test holds it.
#pragma once

#include <QtTest/QTest>
#include <deque>
#include <map>

#include "net/model/train_only.h"
#include "net/model_files/model_reader.h"
#include "trainer/engine/fsdp_engine.h"
#include "trainer/island/inner_loop.h"
#include "trainer/island/sync_lane.h"

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
    if (step == lacks_step) return Error{ErrorCode::kUnreachable, "the mirror is away"};
    return batch_of(step);
  }
  std::uint32_t validation_batches() const override { return 1; }
  Result<TokenBatch> validation_batch(std::uint32_t index) override {
    if (lacks_validation) return Error{*lacks_validation, "the mirror is away"};
    return batch_of(index);
  }

  std::optional<std::uint32_t> lacks_step;  // whose data cannot be had
  std::optional<ErrorCode> lacks_validation;

 private:
  TokenBatch batch_of(std::uint32_t step) {
    tokens_.assign(2 * (kLength + 1), static_cast<std::int32_t>(step % 11));
    return TokenBatch{tokens_, 2, kLength};
  }

  std::vector<std::int32_t> tokens_;
};

// Records what is sent; its all-reduce is that of an island alone (fp32), or fails when told to.
class FakeNetwork final : public LaneNetwork {
 public:
  void send(const IslandMessage& message) override { sent.push_back(message); }
  std::variant<AllReduceReport, AllReduceFailure> all_reduce(const AllReduceSpec& spec, std::span<const float> input,
                                                             const SharedBytes& room,
                                                             const AbortSignal& abort) override {
    const std::span<std::byte> canonical(*room);
    specs.push_back(spec);
    inputs.emplace_back(input.begin(), input.end());
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
    report.bytes_retransmitted = bytes_retransmitted;
    return report;
  }
  void publish(StateNews) override {}
  void keep_average(OuterStep round, WireFormat wire, const std::string& digest,
                    const SharedBytes& canonical) override {
    kept[round] = {round, wire, digest, *canonical};
  }
  void keep_round(const HubCommit& commit, WireFormat, const SharedBytes& canonical, const std::string& from,
                  const HeldState& made) override {
    const auto hears = [](const IslandMessage& message) { return std::holds_alternative<IslandApplied>(message); };
    logged.push_back(
        {commit.round, *canonical, from, made, static_cast<std::size_t>(std::ranges::count_if(sent, hears))});
  }
  Result<KeptAverage> kept_average(OuterStep round, const std::string& digest) override {
    const auto found_one = kept.find(round);
    if (!keeps || found_one == kept.end() || found_one->second.digest != digest) {
      return Error{ErrorCode::kNotFound, "not kept"};
    }
    return found_one->second;
  }

  template <class Message>
  const Message& last() const {
    return std::get<Message>(sent.back());
  }

  std::deque<IslandMessage> sent;
  std::deque<AllReduceSpec> specs;        // of all all-reduces
  std::deque<std::vector<float>> inputs;  // of them
  std::map<OuterStep, KeptAverage> kept;  // what was to be kept
  struct Logged {
    OuterStep round;
    Bytes canonical;
    std::string from;
    HeldState made;
    std::size_t told_before = 0;  // outer steps of which the hub had heard then
  };
  std::vector<Logged> logged;  // in their order
  bool keeps = false;          // and whether it was
  std::vector<float> initial;
  std::optional<FetchedState> fetched;
  std::uint64_t bytes_sent = 7, bytes_retransmitted = 0;
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

// The inner loop and its lanes as an island puts them together, without threads.
class DirectLoop final : public InnerLoopOwner {
 public:
  DirectLoop(const RunConfig& run, Engine& engine, BatchSource& batches, OuterStateStore& outer, IslandStatus& status,
             FakeNetwork& network, const AbortSignal& stop)
      : network_(network),
        fragments_(*fragments_of(layout_of_training(engine.config(), run.train_only), run.fragments)),
        inner_(run, fragments_, engine, batches, outer, status, *this, stop) {
    for (std::uint32_t i = 0; i < run.fragments; ++i) {
      gates.push_back(std::make_unique<AttemptGate>());
      lanes_.push_back(std::make_unique<SyncLane>(FragmentId{i}, fragments_[i], run, outer, *gates[i], status, network,
                                                  [this](LaneNews news) { news_.push_back(std::move(news)); }));
    }
    held_.resize(lanes_.size());
  }
  void send(const IslandMessage& message) override { network_.send(message); }
  void post(FragmentId lane, LaneCommand command) override {
    if (holds) return held_[lane.value].push_back(std::move(command));
    lanes_[lane.value]->handle(std::move(command));
  }
  Result<FetchedState> fetch(const HubRecover&) override {
    if (!network_.fetched) return Error{ErrorCode::kNotFound, "no source"};
    return *network_.fetched;
  }
  Result<std::vector<float>> initial_parameters() override { return network_.initial; }
  void publish(StateNews news) override { told.push_back(news); }

  void begin() { inner_.begin(); }
  // What concerns attempts goes to the lane of the round, all else to the inner loop.
  Status handle(const HubMessage& message) {
    ATOLL_RETURN_IF_ERROR(take_news());
    std::visit(
        [this](const auto& m) {
          using M = std::decay_t<decltype(m)>;
          if constexpr (std::is_same_v<M, HubAttempt> || std::is_same_v<M, HubAbort> ||
                        std::is_same_v<M, HubShowChunks>) {
            post(FragmentId{m.round.value % static_cast<std::uint32_t>(lanes_.size())}, m);
          } else if constexpr (std::is_same_v<M, HubWelcome>) {
            for (std::uint32_t i = 0; i < lanes_.size(); ++i) post(FragmentId{i}, LanePassWelcome{});
          }
        },
        message);
    ATOLL_RETURN_IF_ERROR(inner_.handle(message));
    return take_news();
  }
  Status work() {
    ATOLL_RETURN_IF_ERROR(inner_.work());
    return take_news();
  }
  Status idle() { return inner_.idle(); }
  bool has_work() const { return inner_.has_work(); }
  bool finished() const { return inner_.finished(); }
  std::optional<InnerState> interrupted_work() {
    std::vector<std::vector<float>> residuals;
    for (const auto& lane : lanes_) residuals.push_back(lane->residual());
    return inner_.interrupted_work(residuals);
  }
  void resume_from(InnerState work) { inner_.resume_from(std::move(work)); }
  InnerLoop& inner() { return inner_; }
  const std::vector<ParameterRange>& ranges(std::uint32_t fragment) const { return fragments_[fragment].ranges; }

  // A lane does what it was told while lanes were held; the inner loop hears of it with take_news(), the next message
  // or the next step.
  void release(std::uint32_t lane) {
    for (auto& command : std::exchange(held_[lane], {})) lanes_[lane]->handle(std::move(command));
  }
  Status take_news() {
    while (!news_.empty()) {
      LaneNews news = std::move(news_.front());
      news_.pop_front();
      ATOLL_RETURN_IF_ERROR(inner_.handle(std::move(news)));
    }
    return ok_status();
  }

  bool holds = false;  // lanes do nothing until released
  std::vector<StateNews> told;
  std::vector<std::unique_ptr<AttemptGate>> gates;

 private:
  FakeNetwork& network_;
  const std::vector<Fragment> fragments_;
  std::vector<std::unique_ptr<SyncLane>> lanes_;
  std::vector<std::deque<LaneCommand>> held_;
  std::deque<LaneNews> news_;
  InnerLoop inner_;
};

struct RoundLoopFixture {
  // Without devices: on this processor.
  explicit RoundLoopFixture(const RunConfig& run = run_config(), const EngineOptions& options = {},
                            std::unique_ptr<DeviceGroup> devices = nullptr)
      : fragments(run.fragments),
        engine(devices ? create_engine(tiny_model(), options, std::move(devices)).value()
                       : Engine::create(tiny_model(), options).value()),
        outer(engine->numel()),
        status(IslandState{}),
        loop(run, *engine, batches, outer, status, network, stop) {
    network.initial.resize(static_cast<std::size_t>(engine->numel()));
    engine->read_parameters(network.initial);
  }
  // A run of so many fragments; outlives the fixture.
  static const RunConfig& run_of(std::uint32_t fragments) {
    static std::map<std::uint32_t, RunConfig> runs;
    const auto [run, is_new] = runs.try_emplace(fragments, run_config());
    run->second.fragments = fragments;
    return run->second;
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
  void must(const Status& status_of_call) {
    QVERIFY2(status_of_call.ok(), status_of_call.ok() ? "" : status_of_call.error().message.c_str());
  }
  void begin_round(std::uint32_t round, std::uint32_t inner_steps = kInnerSteps, bool validate = false) {
    must(loop.handle(HubRoundBegin{OuterStep{round}, inner_steps, round * 4, 4, validate, fragment_of(round)}));
  }
  void train() {
    while (loop.has_work()) must(loop.work());
  }
  void train_first_round() {
    must(loop.handle(HubInitialise{}));
    begin_round(0);
    train();
  }
  FragmentId fragment_of(std::uint32_t round) const { return FragmentId{round % fragments}; }
  std::vector<float> inner() const {
    std::vector<float> values(static_cast<std::size_t>(engine->numel()));
    engine->read_parameters(values);
    return values;
  }
  std::vector<float> theta() const { return {outer.parameters().begin(), outer.parameters().end()}; }
  // What it said last of a kind; fails the test when it said nothing of it.
  template <class Message>
  Message said() const {
    for (auto message = network.sent.rbegin(); message != network.sent.rend(); ++message) {
      if (const auto* found = std::get_if<Message>(&*message)) return *found;
    }
    qFatal("nothing of the kind was said");
  }
  HubAttempt attempt(std::uint32_t round, std::uint32_t number) const {
    HubAttempt message{OuterStep{round}, Attempt{number}, {{IslandId{"isl-0000000000000000"}, {"127.0.0.1", 1}, 32}}};
    message.fragment = fragment_of(round);
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
    message.fragment = fragment_of(round);
    return message;
  }

  const std::uint32_t fragments;
  std::unique_ptr<Engine> engine;
  FixedBatches batches;
  OuterStateStore outer;
  IslandStatus status;
  FakeNetwork network;
  AbortSignal stop;
  DirectLoop loop;
};

}  // namespace atl::test
