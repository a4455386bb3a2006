#include "trainer/island/state_evaluator.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "net/base/memory.h"

namespace atl {
namespace {

constexpr int kLowestPriority = 19;
constexpr std::chrono::milliseconds kLookForEnd{100};  // how often who waits looks whether it should stop
constexpr std::int64_t kTextsAtOnce = 8;               // as `atoll eval` has them by default
constexpr std::int64_t kRowsAtOnce = 512;

// Fails as soon as nobody wants to know any more.
class AbortableEngine final : public InferenceEngine {
 public:
  AbortableEngine(InferenceEngine& engine, const AbortSignal& abort) : engine_(engine), abort_(abort) {}

  const ModelConfig& config() const override { return engine_.config(); }
  const InferenceOptions& options() const override { return engine_.options(); }
  DeviceKind device_kind() const override { return engine_.device_kind(); }
  std::int64_t kept_bytes() const override { return engine_.kept_bytes(); }
  std::int64_t length(std::int64_t slot) const override { return engine_.length(slot); }
  void keep(std::int64_t slot, std::int64_t length) override { engine_.keep(slot, length); }
  Result<std::vector<float>> logits(std::span<const SlotTokens> texts) override {
    if (abort_.raised()) return Error{ErrorCode::kAborted, abort_.reason()};
    return engine_.logits(texts);
  }
  Result<std::vector<TokenScore>> scores(std::span<const SlotTokens> texts) override {
    if (abort_.raised()) return Error{ErrorCode::kAborted, abort_.reason()};
    return engine_.scores(texts);
  }

 private:
  InferenceEngine& engine_;
  const AbortSignal& abort_;
};

// In the order of the kind's metrics, within their bounds.
std::vector<double> figures_of(const EvaluatedTask& result) {
  std::vector<double> figures;
  for (const TaskMetric& metric : metrics_of(result.task.kind)) {
    const auto found = std::ranges::find(result.scores.metrics, metric.name, &Metric::name);
    const bool is_known = found != result.scores.metrics.end() && !std::isnan(found->value);
    figures.push_back(is_known ? std::clamp(found->value, 0.0, metric.most) : metric.most);
  }
  return figures;
}

// What is left when training has taken all that it will; nothing: nobody knows.
std::optional<std::uint64_t> room_beside(std::uint64_t training_bytes) {
  const UsableMemory memory = usable_memory();
  if (memory.total == 0) return std::nullopt;
  const std::uint64_t to_come = training_bytes - std::min(own_memory(), training_bytes);
  return memory.available - std::min(memory.available, to_come);
}

}  // namespace

StateEvaluator::StateEvaluator(Surroundings around, RunConfig run, ModelConfig model, const AbortSignal& abort)
    : around_(std::move(around)), run_(std::move(run)), model_(std::move(model)), abort_(abort), thread_([this] {
        work();
      }) {}

void StateEvaluator::become(Stage stage) {
  MutexLock lock(mutex_);
  stage_ = stage;
  changed_.notify_all();
}

bool StateEvaluator::wait_while(MutexLock& lock, Stage stage, std::optional<Deadline> until) {
  const auto is_over = [&]() ATOLL_REQUIRES(mutex_) { return stage_ != stage; };
  while (!abort_.raised() && !(until && until->expired())) {
    if (changed_.wait(lock, Deadline::after(kLookForEnd), is_over)) return true;
  }
  return false;
}

void StateEvaluator::evaluate(bool to_the_end) {
  MutexLock lock(mutex_);
  if (stage_ == Stage::kFetches && (waits_for_tasks_ || to_the_end)) {
    waits_for_tasks_ = false;
    (void)wait_while(lock, Stage::kFetches, Deadline::after(around_.tasks_wait));
  }
  if (to_the_end) (void)wait_while(lock, Stage::kScores);
  if (stage_ != Stage::kIdle) {
    if (stage_ != Stage::kEnded) {
      spdlog::warn("evaluation left_out=\"{}\"",
                   stage_ == Stage::kFetches ? "the tasks have not come yet" : "the one before goes on");
    }
    return;
  }
  stage_ = Stage::kAsked;
  changed_.notify_all();
  (void)wait_while(lock, Stage::kAsked);
  if (to_the_end) (void)wait_while(lock, Stage::kScores);
}

void StateEvaluator::work() {
  const Status prepared = prepare();
  if (!prepared.ok()) {
    if (!abort_.raised()) spdlog::error("evaluation error=\"{}\"", prepared.error().message);
    return become(Stage::kEnded);
  }
  // Of this thread: what trains comes first.
  (void)::setpriority(PRIO_PROCESS, 0, kLowestPriority);
  become(Stage::kIdle);
  while (wait_for_request()) {
    const Status scored = evaluate_now();
    if (!scored.ok() && !abort_.raised()) spdlog::warn("evaluation error=\"{}\"", scored.error().message);
    become(Stage::kIdle);
  }
  become(Stage::kEnded);
}

bool StateEvaluator::wait_for_request() {
  MutexLock lock(mutex_);
  while (!abort_.raised()) {
    if (wait_while(lock, Stage::kIdle)) return true;
  }
  return false;
}

Status StateEvaluator::prepare() {
  ATOLL_RETURN_IF_ERROR(
      fetch_run_tasks(run_.evaluation, around_.self, around_.hub, around_.data, abort_, around_.download));
  ATOLL_ASSIGN_OR_RETURN(tasks_, load_run_tasks(run_, model_, around_.data));
  return ok_status();
}

Status StateEvaluator::evaluate_now() {
  try {
    ATOLL_ASSIGN_OR_RETURN(const Loaded loaded, load());
    become(Stage::kScores);
    return score(loaded);
  } catch (const std::exception& failure) {
    return Error{ErrorCode::kInternal, failure.what()};
  }
}

// The state is held still while it is copied: a lane's outer step waits.
Result<StateEvaluator::Loaded> StateEvaluator::load() const {
  InferenceOptions options{.precision = Precision::kFp32,
                           .slots = std::min(tasks_.pairs, kTextsAtOnce),
                           .capacity = tasks_.capacity,
                           .most_rows = kRowsAtOnce,
                           .compute_threads = around_.threads,
                           .available_bytes = room_beside(around_.training_bytes)};
  const MutexLock still(around_.outer->changing());
  if (!around_.outer->holds_state()) return Error{ErrorCode::kNotFound, "this island holds no outer state"};
  const std::span<const float> parameters = around_.outer->parameters();
  const auto read = [&](std::int64_t first, std::span<float> values) {
    std::ranges::copy(parameters.subspan(static_cast<std::size_t>(first), values.size()), values.begin());
  };
  auto engine = InferenceEngine::create(model_, options, read);
  if (!engine.ok() && engine.error().code == ErrorCode::kInvalidArgument) {
    options.precision = Precision::kBf16;
    engine = InferenceEngine::create(model_, options, read);
  }
  if (!engine.ok()) return engine.error();
  return Loaded{around_.outer->version(), std::move(*engine)};
}

Status StateEvaluator::score(const Loaded& loaded) {
  AbortableEngine engine(*loaded.engine, abort_);
  const auto began = Clock::now();
  for (std::size_t i = 0; i < tasks_.tasks.size(); ++i) {
    ATOLL_ASSIGN_OR_RETURN(const EvaluatedTask result, evaluate_task(engine, tasks_.tasks[i], tasks_.tokens[i],
                                                                     tasks_.max_length, /*bootstrap=*/0, {}));
    const std::vector<double> figures = figures_of(result);
    spdlog::info("evaluation outer_step={} task={} {}={:.4f} seconds={:.1f}", loaded.outer_step.value,
                 tasks_.tasks[i].name, metrics_of(tasks_.tasks[i].kind).front().name, figures.front(),
                 Seconds(Clock::now() - began).count());
    around_.told({loaded.outer_step, static_cast<std::uint32_t>(i), figures});
  }
  return ok_status();
}

}  // namespace atl
