// Outer step 0 from the hub over its own port: all of it, what is missing of it, and what is told when the hub's copy
// is not what it should be.
#include "net/recovery/base_model_fetch.h"

#include <QtTest>
#include <fstream>

#include "net/base/encoding.h"
#include "net/hub/base_model.h"
#include "net/model/initialise.h"
#include "tests/fakes/test_run.h"
#include "tests/net/hub/loopback_hub.h"

namespace atl {
namespace {

template <class T>
T must(Result<T> result) {
  if (!result.ok()) qFatal("%s", result.error().message.c_str());
  return std::move(result).value();
}
void must(const Status& status) {
  if (!status.ok()) qFatal("%s", status.error().message.c_str());
}

bool says(const Status& status, const char* words) {
  return !status.ok() && status.error().message.find(words) != std::string::npos;
}

// Five chunks, the last one short.
ModelConfig wide_config() {
  ModelConfig config = must(model_config_from_json(tiny_model_json()));
  config.vocab_size = 140'000;
  config.hidden_size = 64;
  return config;
}

}  // namespace

class BaseModelFetchTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase();
  void init();
  void all_of_it_comes_to_the_last_bit();
  void what_is_there_is_not_fetched_again();
  void a_damaged_copy_is_told_with_what_to_do_and_what_came_stays_data();
  void a_damaged_copy_is_told_with_what_to_do_and_what_came_stays();
  void no_copy_is_told_with_what_to_do();
  void another_address_of_the_hub_is_tried();
  void who_was_removed_gets_nothing();
  void another_state_that_is_named_meanwhile_ends_it();

 private:
  Status fetch(const std::vector<Address>& hub, FetchPlan& plan, const std::function<bool()>& superseded = {}) {
    return fetch_base_model(
        island_, hub, target_, plan, abort_,
        [this](std::uint64_t done, std::uint64_t all) { done_ = done, all_ = all; }, superseded);
  }
  FetchPlan new_plan() {
    const auto numel = static_cast<std::int64_t>(parameters_.size());
    return {island_, FetchModel{.numel = parameters_.size(), .fragments = {Fragment{{{0, numel}}, numel}}}, {}};
  }
  bool has_all(FetchPlan& plan) const {
    if (!plan.complete()) return false;
    const FetchedState state = plan.state().release(OuterStep{0});
    return state.parameters == parameters_ &&
           std::ranges::all_of(state.momentum, [](float value) { return value == 0; });
  }

  QTemporaryDir directory_;
  std::vector<float> parameters_;
  std::optional<BaseModel> model_;
  std::optional<LoopbackHub> hub_;
  Identity island_;
  HeldState target_;
  AbortSignal abort_;
  std::uint64_t done_ = 0, all_ = 0;
};

void BaseModelFetchTest::initTestCase() {
  const std::string model = directory_.filePath("model").toStdString();
  parameters_ = fresh_parameters(wide_config(), 9);
  must(write_model_directory(model, wide_config(), parameters_));
  model_.emplace(must(BaseModel::open(model, abort_)));
}

void BaseModelFetchTest::init() {
  RunConfig run = loopback_run(1, 0);
  run.model_json = to_json(wide_config());
  hub_.emplace(run, kIslandCertificateLifetime, "", &*model_);
  island_ = hub_->enrol("island");
  target_ = {OuterStep{0}, hub_->run().initial_state_sha256};
  done_ = all_ = 0;
}

void BaseModelFetchTest::all_of_it_comes_to_the_last_bit() {
  FetchPlan plan = new_plan();

  const Status fetched = fetch({hub_->address()}, plan);

  QVERIFY2(fetched.ok(), fetched.ok() ? "" : fetched.error().message.c_str());
  QCOMPARE(done_, sizeof(float) * parameters_.size());
  QCOMPARE(all_, done_);
  QVERIFY(has_all(plan));
}

void BaseModelFetchTest::what_is_there_is_not_fetched_again() {
  FetchPlan plan = new_plan();
  const auto values = of_chunk(std::span<const float>(parameters_), 1);
  const Bytes chunk = base_model_chunk(encode_parameters(values, ModelDtype::kFloat32), ModelDtype::kFloat32);
  plan.state().put(1, {OuterStep{0}, sha256(chunk)}, chunk);
  // Whoever asked for it again would be told that it is damaged.
  std::fstream file(HubHome{hub_->directory()}.base_model_parameters(), std::ios::in | std::ios::out);
  file.seekp(static_cast<std::streamoff>(sizeof(float) * (kStateChunkNumel + 5))).put('!').flush();

  const Status fetched = fetch({hub_->address()}, plan);

  QVERIFY2(fetched.ok(), fetched.ok() ? "" : fetched.error().message.c_str());
  QVERIFY(has_all(plan));
}

void BaseModelFetchTest::a_damaged_copy_is_told_with_what_to_do_and_what_came_stays_data() {
  QTest::addColumn<bool>("cut");
  QTest::newRow("other bytes") << false;
  QTest::newRow("cut short") << true;
}

void BaseModelFetchTest::a_damaged_copy_is_told_with_what_to_do_and_what_came_stays() {
  QFETCH(const bool, cut);
  const HubHome home{hub_->directory()};
  const std::uint64_t in_the_last = sizeof(float) * (parameters_.size() - 5);
  if (cut) {
    std::filesystem::resize_file(home.base_model_parameters(), in_the_last);
  } else {
    std::fstream(home.base_model_parameters(), std::ios::in | std::ios::out)
        .seekp(static_cast<std::streamoff>(in_the_last))
        .put('!');
  }
  FetchPlan plan = new_plan();

  const Status damaged = fetch({hub_->address()}, plan);

  QVERIFY2(says(damaged, "atoll hub base-model DIR"), damaged.ok() ? "" : damaged.error().message.c_str());
  QCOMPARE(damaged.error().code, ErrorCode::kCorrupt);
  QVERIFY(plan.is_right(0));

  // While the hub serves.
  must(restore_base_model(hub_->directory(), *model_));
  const Status again = fetch({hub_->address()}, plan);

  QVERIFY2(again.ok(), again.ok() ? "" : again.error().message.c_str());
  QVERIFY(has_all(plan));
}

void BaseModelFetchTest::no_copy_is_told_with_what_to_do() {
  std::filesystem::remove(HubHome{hub_->directory()}.base_model_manifest());
  FetchPlan plan = new_plan();

  const Status fetched = fetch({hub_->address()}, plan);

  QVERIFY2(says(fetched, "has no copy"), fetched.ok() ? "" : fetched.error().message.c_str());
  QVERIFY(says(fetched, "atoll hub base-model DIR"));
}

void BaseModelFetchTest::another_address_of_the_hub_is_tried() {
  FetchPlan plan = new_plan();

  const Status fetched = fetch({{"127.0.0.1", 1}, hub_->address()}, plan);

  QVERIFY2(fetched.ok(), fetched.ok() ? "" : fetched.error().message.c_str());
}

void BaseModelFetchTest::who_was_removed_gets_nothing() {
  must(remove_enrolled_island(hub_->directory(), island_.name.value));
  FetchPlan plan = new_plan();

  const Status fetched = fetch({hub_->address()}, plan);

  QVERIFY(!fetched.ok());
  QCOMPARE(fetched.error().code, ErrorCode::kPermissionDenied);
}

void BaseModelFetchTest::another_state_that_is_named_meanwhile_ends_it() {
  FetchPlan plan = new_plan();

  const Status fetched = fetch({hub_->address()}, plan, [] { return true; });

  QVERIFY(!fetched.ok());
  QCOMPARE(fetched.error().code, ErrorCode::kNotFound);
}

}  // namespace atl

QTEST_GUILESS_MAIN(atl::BaseModelFetchTest)
#include "base_model_fetch_test.moc"
