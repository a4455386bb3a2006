// What an island tells of the run's tasks: what `atoll eval` would, of the outer parameters as they were when it was
// asked; and what it does when it cannot.
#include <QtCore/QTemporaryDir>
#include <QtTest>

#include "net/base/file.h"
#include "net/base/mailbox.h"
#include "net/base/sha256.h"
#include "net/data/run_dataset.h"
#include "net/model/initialise.h"
#include "tests/fakes/test_run.h"
#include "trainer/island/state_evaluator.h"

using namespace atl;

namespace {

constexpr const char* kChoices = R"({"kind": "multiple_choice", "task": "choices"}
{"context": "one two three", "choices": ["four", "five", "a long way home"], "gold": 0}
{"context": "a ring of", "choices": ["islands", "gold"], "gold": 1}
)";
constexpr const char* kTexts = R"({"kind": "loglikelihood_rolling", "task": "texts"}
{"text": "an atoll is a ring of islands around a lagoon"}
)";
constexpr std::chrono::seconds kPatience{120};

}  // namespace

class StateEvaluatorTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void init();
  void figures_are_those_of_the_scorer();
  void each_state_is_evaluated_as_it_was_when_it_was_asked();
  void what_has_no_end_is_told_as_the_worst_there_is();
  void tasks_that_do_not_come_hold_nobody_up();
  void tasks_of_another_run_are_never_asked();
  void an_island_without_state_tells_nothing();

 private:
  void add_task(const std::string& content, const std::string& name, TaskKind kind) {
    EvaluationTask task{name, kind, 1, content.size(), sha256_hex(as_bytes(content))};
    const auto path = directory() / evaluation_file_name(task);
    QVERIFY(make_directories(path.parent_path()).ok());
    QVERIFY(write_file_atomically(path, content, FileMode::kPublic).ok());
    run_.evaluation.every = 1;
    run_.evaluation.tasks.push_back(task);
  }
  std::filesystem::path directory() const { return directory_->path().toStdString(); }
  StateEvaluator::Surroundings around() {
    return {.self = made_.island(1),
            .hub = nowhere_,
            .data = directory(),
            .outer = outer_,
            .training_bytes = 0,
            .threads = 1,
            .tasks_wait = std::chrono::seconds(60),
            .told = [this](const IslandEvaluation& said) { (void)told_.push(said); }};
  }
  std::vector<double> scored(const char* task) const;

  TestRun made_;
  std::vector<Address> nowhere_{{"127.0.0.1", 9}};  // "discard", which nobody serves
  std::optional<QTemporaryDir> directory_;
  RunConfig run_;
  ModelConfig model_;
  std::shared_ptr<OuterStateStore> outer_;
  Mailbox<IslandEvaluation> told_{64};
};

void StateEvaluatorTest::init() {
  directory_.emplace();
  run_ = {};
  const std::string sha256(64, 'a');
  RunDataset bytes;
  bytes.sources = {{"text", kMixtureParts, sha256, {}, {1000, 100, sha256}, {}}};
  run_.dataset_json = bytes.to_json();
  model_ = *model_config_from_json(tiny_model_json());
  std::vector<float> parameters = fresh_parameters(model_, 7);
  outer_ = std::make_shared<OuterStateStore>(static_cast<std::int64_t>(parameters.size()));
  outer_->initialise(std::move(parameters));
  while (told_.try_pop()) {
  }
}

// By the engine and scorer of `atoll eval`, on the parameters as they are now.
std::vector<double> StateEvaluatorTest::scored(const char* task) const {
  const TokenTasks tasks = *load_run_tasks(run_, model_, directory());
  const auto parameters = outer_->parameters();
  const auto engine =
      InferenceEngine::create(model_, {.slots = 2, .capacity = tasks.capacity}, [&](std::int64_t first, auto values) {
        std::ranges::copy(parameters.subspan(static_cast<std::size_t>(first), values.size()), values.begin());
      });
  for (std::size_t i = 0; i < tasks.tasks.size(); ++i) {
    if (tasks.tasks[i].name != task) continue;
    const auto result = evaluate_task(**engine, tasks.tasks[i], tasks.tokens[i], tasks.max_length, 0, {});
    std::vector<double> values;
    for (const Metric& metric : result->scores.metrics) values.push_back(metric.value);
    return values;
  }
  return {};
}

void StateEvaluatorTest::figures_are_those_of_the_scorer() {
  add_task(kChoices, "choices", TaskKind::kMultipleChoice);
  add_task(kTexts, "texts", TaskKind::kRolling);
  AbortSignal abort;
  StateEvaluator evaluator(around(), run_, model_, abort);

  evaluator.evaluate(/*to_the_end=*/true);

  for (std::uint32_t task = 0; task < 2; ++task) {
    const auto told = told_.try_pop();
    QVERIFY(told.has_value());
    QCOMPARE(told->outer_step, OuterStep{0});
    QCOMPARE(told->task, task);
    QVERIFY(are_figures_of(run_.evaluation.tasks[task].kind, told->figures));
    const std::vector<double> expected = scored(run_.evaluation.tasks[task].name.c_str());
    QCOMPARE(told->figures.size(), expected.size());
    // Texts beside each other are computed in one product, which rounds otherwise.
    for (std::size_t i = 0; i < expected.size(); ++i)
      QVERIFY(std::abs(told->figures[i] / expected[i] - 1) < 1e-4 || told->figures[i] == expected[i]);
  }
  QVERIFY(!told_.try_pop());
  abort.raise("the test ends");
}

void StateEvaluatorTest::each_state_is_evaluated_as_it_was_when_it_was_asked() {
  add_task(kTexts, "texts", TaskKind::kRolling);
  AbortSignal abort;
  StateEvaluator evaluator(around(), run_, model_, abort);
  const std::vector<double> before = scored("texts");

  evaluator.evaluate(/*to_the_end=*/false);
  // Training goes on, while the other is scored.
  const std::vector<float> average(outer_->parameters().size(), 0.25f);
  outer_->apply(std::vector<ParameterRange>{{0, static_cast<std::int64_t>(average.size())}}, WireFormat::kFp32,
                std::as_bytes(std::span(average)), 0.7f, 0.9f);
  evaluator.evaluate(/*to_the_end=*/true);

  const auto first = told_.pop(Deadline::after(kPatience)), second = told_.pop(Deadline::after(kPatience));
  QVERIFY(first.has_value() && second.has_value());
  QCOMPARE(first->outer_step, OuterStep{0});
  QCOMPARE(second->outer_step, OuterStep{1});
  QVERIFY(std::abs(first->figures[2] / before[2] - 1) < 1e-4);
  QVERIFY(std::abs(second->figures[2] / scored("texts")[2] - 1) < 1e-4);
  QVERIFY(second->figures[2] != first->figures[2]);
  abort.raise("the test ends");
}

void StateEvaluatorTest::what_has_no_end_is_told_as_the_worst_there_is() {
  add_task(kTexts, "texts", TaskKind::kRolling);
  // Logits so far apart that a word's perplexity is beyond all numbers.
  std::vector<float> parameters(outer_->parameters().begin(), outer_->parameters().end());
  for (float& value : parameters) value *= 100;
  outer_->initialise(std::move(parameters));
  AbortSignal abort;
  StateEvaluator evaluator(around(), run_, model_, abort);

  evaluator.evaluate(/*to_the_end=*/true);

  const auto told = told_.try_pop();
  QVERIFY(told.has_value());
  QVERIFY(are_figures_of(TaskKind::kRolling, told->figures));
  abort.raise("the test ends");
}

void StateEvaluatorTest::tasks_that_do_not_come_hold_nobody_up() {
  add_task(kChoices, "choices", TaskKind::kMultipleChoice);
  std::filesystem::remove(directory() / evaluation_file_name(run_.evaluation.tasks[0]));
  AbortSignal abort;
  StateEvaluator::Surroundings shortly = around();
  shortly.tasks_wait = std::chrono::milliseconds(10);
  StateEvaluator evaluator(std::move(shortly), run_, model_, abort);

  for (int round = 0; round < 3; ++round) evaluator.evaluate(/*to_the_end=*/false);
  evaluator.evaluate(/*to_the_end=*/true);

  QVERIFY(!told_.try_pop());
  abort.raise("the test ends");
}

void StateEvaluatorTest::tasks_of_another_run_are_never_asked() {
  add_task(kChoices, "choices", TaskKind::kMultipleChoice);
  const auto path = directory() / evaluation_file_name(run_.evaluation.tasks[0]);
  QVERIFY(write_file_atomically(path, kTexts, FileMode::kPublic).ok());
  QVERIFY(load_run_tasks(run_, model_, directory()).error().code == ErrorCode::kCorrupt);
  // And those that say of themselves what the run does not.
  run_.evaluation.tasks[0].sha256 = sha256_hex(as_bytes(std::string(kTexts)));
  const auto moved = directory() / evaluation_file_name(run_.evaluation.tasks[0]);
  QVERIFY(write_file_atomically(moved, kTexts, FileMode::kPublic).ok());
  QVERIFY(load_run_tasks(run_, model_, directory()).error().code == ErrorCode::kCorrupt);
}

void StateEvaluatorTest::an_island_without_state_tells_nothing() {
  add_task(kChoices, "choices", TaskKind::kMultipleChoice);
  (void)outer_->release();
  AbortSignal abort;
  StateEvaluator evaluator(around(), run_, model_, abort);
  evaluator.evaluate(/*to_the_end=*/true);
  QVERIFY(!told_.try_pop());
  abort.raise("the test ends");
}

QTEST_GUILESS_MAIN(StateEvaluatorTest)
#include "state_evaluator_test.moc"
