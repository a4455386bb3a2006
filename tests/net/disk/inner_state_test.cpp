// The work of an interrupted round on the disk.
#include "net/disk/inner_state_file.h"

#include <QTemporaryDir>
#include <QtTest>
#include <fstream>

#include "net/base/file.h"

using namespace atl;

namespace {

constexpr std::uint64_t kNumel = 1000;
constexpr std::array kTrained{ParameterRange{300, 100}, ParameterRange{500, 900}};  // of 1,500

InnerState sample() {
  InnerState state;
  state.round = {OuterStep{7}, 20, 1ull << 40, 160, false};
  state.outer_hash = std::string(64, 'a');
  state.inner_step = 11;
  state.loss_sum = 31.5;
  state.inner_seconds = 2.25;
  state.optimizer_steps = 151;
  for (auto* values : {&state.parameters, &state.first_moment, &state.second_moment, &state.residual}) {
    for (std::uint64_t i = 0; i < kNumel; ++i) values->push_back(static_cast<float>(i) * 0.25f - 3);
  }
  return state;
}

}  // namespace

class InnerStateTest : public QObject {
  Q_OBJECT

  QTemporaryDir directory_;
  std::filesystem::path path() const { return std::filesystem::path(directory_.path().toStdString()) / "inner.state"; }

 private Q_SLOTS:
  void what_is_kept_comes_back();
  void a_file_that_is_not_whole_is_refused_data();
  void a_file_that_is_not_whole_is_refused();
  void another_models_file_is_refused();
  void no_file_is_not_found();
  void only_the_same_round_from_the_same_state_goes_on_data();
  void only_the_same_round_from_the_same_state_goes_on();
};

void InnerStateTest::what_is_kept_comes_back() {
  for (const bool with_residual : {true, false}) {
    InnerState state = sample();
    if (!with_residual) state.residual.clear();
    QVERIFY(save_inner_state(path(), state).ok());

    const auto loaded = load_inner_state(path(), 1500, kTrained);

    QVERIFY(loaded.ok());
    QVERIFY(loaded->belongs_to(state.round, state.outer_hash));
    QCOMPARE(loaded->inner_step, state.inner_step);
    QCOMPARE(loaded->loss_sum, state.loss_sum);
    QCOMPARE(loaded->inner_seconds, state.inner_seconds);
    QCOMPARE(loaded->optimizer_steps, state.optimizer_steps);
    QCOMPARE(loaded->parameters, state.parameters);
    QCOMPARE(loaded->first_moment, state.first_moment);
    QCOMPARE(loaded->second_moment, state.second_moment);
    QCOMPARE(loaded->residual, state.residual);
  }
}

void InnerStateTest::a_file_that_is_not_whole_is_refused_data() {
  QTest::addColumn<int>("cut");
  QTest::addColumn<int>("flipped");
  QTest::newRow("empty") << 1 << -1;
  QTest::newRow("no header") << 20 << -1;
  QTest::newRow("half") << 8000 << -1;
  QTest::newRow("all but a byte") << -1 << -1;
  QTest::newRow("another magic") << 0 << 0;
  QTest::newRow("another version") << 0 << 8;
  QTest::newRow("as if of the whole model") << 0 << -2;
  QTest::newRow("a changed step") << 0 << 20;
  QTest::newRow("a changed parameter") << 0 << 5000;
}

void InnerStateTest::a_file_that_is_not_whole_is_refused() {
  QFETCH(const int, cut);
  QFETCH(const int, flipped);
  QVERIFY(save_inner_state(path(), sample()).ok());
  std::string content = *read_file(path());
  if (cut != 0) content.resize(cut > 0 ? static_cast<std::size_t>(cut) : content.size() - 1);
  if (flipped == -2) content[8] = 1;
  if (flipped >= 0) content[static_cast<std::size_t>(flipped)] ^= 1;
  std::ofstream(path(), std::ios::binary) << content;

  const auto loaded = load_inner_state(path(), 1500, kTrained);

  QVERIFY(!loaded.ok());
  QCOMPARE(loaded.error().code, ErrorCode::kCorrupt);
}

void InnerStateTest::another_models_file_is_refused() {
  QVERIFY(save_inner_state(path(), sample()).ok());

  QCOMPARE(load_inner_state(path(), 1500, std::span(kTrained).first(1)).error().code, ErrorCode::kCorrupt);
}

void InnerStateTest::no_file_is_not_found() {
  QCOMPARE(load_inner_state("/no/such/inner.state", 1500, kTrained).error().code, ErrorCode::kNotFound);
}

void InnerStateTest::only_the_same_round_from_the_same_state_goes_on_data() {
  QTest::addColumn<int>("what");
  QTest::newRow("another round") << 0;
  QTest::newRow("another lease") << 1;
  QTest::newRow("other steps") << 2;
  QTest::newRow("another outer state") << 3;
  QTest::newRow("a receiver's part") << 4;
}

void InnerStateTest::only_the_same_round_from_the_same_state_goes_on() {
  QFETCH(const int, what);
  const InnerState state = sample();
  HubRoundBegin begun = state.round;
  std::string hash = state.outer_hash;
  if (what == 0) begun.round.value += 1;
  if (what == 1) begun.lease_first_sequence += 1;
  if (what == 2) begun.inner_steps += 1;
  if (what == 3) hash[0] = 'b';
  if (what == 4) begun = {state.round.round, 0, 0, 0, false};

  QVERIFY(!state.belongs_to(begun, hash));
}

QTEST_GUILESS_MAIN(InnerStateTest)
#include "inner_state_test.moc"
