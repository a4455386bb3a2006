// The hash of the outer state with which a run begins.
#include "net/hub/initial_state.h"

#include <QtTest>
#include <vector>

#include "net/base/encoding.h"
#include "net/model/config.h"
#include "net/model/initialise.h"
#include "net/recovery/outer_state.h"

namespace atl {

class InitialStateTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void it_is_that_of_fresh_parameters_without_momentum_data();
  void it_is_that_of_fresh_parameters_without_momentum();
};

void InitialStateTest::it_is_that_of_fresh_parameters_without_momentum_data() {
  QTest::addColumn<int>("vocabulary");
  QTest::newRow("one chunk") << 100;
  QTest::newRow("a table that fills chunks of its own, others that share") << 90'000;
}

void InitialStateTest::it_is_that_of_fresh_parameters_without_momentum() {
  QFETCH(const int, vocabulary);
  ModelConfig model;
  model.vocab_size = vocabulary;
  model.hidden_size = 64;
  model.intermediate_size = 96;
  model.num_hidden_layers = 3;
  model.num_attention_heads = 4;
  model.num_key_value_heads = 2;
  model.head_dim = 16;
  model.max_position_embeddings = 32;
  RunConfig run;
  run.model_json = to_json(model);
  run.seed = 7;
  const std::vector<float> parameters = fresh_parameters(model, run.seed);
  const std::vector<float> momentum(parameters.size());
  const std::uint64_t chunks = state_chunks(parameters.size());
  QCOMPARE(chunks > 2, vocabulary > 1000);

  const auto hash = initial_state_hash(run);

  QVERIFY2(hash.ok(), hash.ok() ? "" : hash.error().message.c_str());
  QCOMPARE(*hash, to_hex(make_state_manifest(OuterStep{0}, parameters, momentum).tree_hash()));
}

}  // namespace atl

QTEST_GUILESS_MAIN(atl::InitialStateTest)
#include "initial_state_test.moc"
