// What a token costs, against counts by hand; and which part of a step each operation is.
#include "net/step/flops.h"

#include <QtTest>

#include "net/step/step_part.h"

using namespace atl;

namespace {

// 800 of the embedding; a layer: 64 + 32 + 32 + 64 of attention, 3 * 128 of the feed-forward block, 2 * 8 of norms,
// 592 in all, two of them 1,184; 8 of the last norm; 800 of the output.
ModelConfig small_model() {
  ModelConfig config;
  config.vocab_size = 100;
  config.hidden_size = 8;
  config.intermediate_size = 16;
  config.num_hidden_layers = 2;
  config.num_attention_heads = 2;
  config.num_key_value_heads = 1;
  config.head_dim = 4;
  return config;
}

}  // namespace

class FlopsTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  // 12 * 2 layers * 8 * 16 tokens = 3,072 of attention.
  void all_parameters_count_by_the_papers_formula() { QCOMPARE(flops_per_token(small_model(), 16), 6.0 * 2792 + 3072); }

  void a_table_that_is_only_looked_up_does_not_count_by_torchtitans() {
    QCOMPARE(torchtitan_flops_per_token(small_model(), 16), 6.0 * 1992 + 3072);
  }

  void a_table_that_is_the_output_matrix_counts_once_by_both() {
    ModelConfig config = small_model();
    config.tie_word_embeddings = true;

    QCOMPARE(flops_per_token(config, 16), 6.0 * 1992 + 3072);
    QCOMPARE(torchtitan_flops_per_token(config, 16), 6.0 * 1992 + 3072);
  }

  // Heads of 8: 128 + 64 + 64 + 128 of attention, 784 a layer, 2,376 in all; attention is twice as wide as the model.
  void heads_wider_than_the_model_count_by_their_width_in_torchtitans_alone() {
    ModelConfig config = small_model();
    config.tie_word_embeddings = true;
    config.head_dim = 8;

    QCOMPARE(flops_per_token(config, 16), 6.0 * 2376 + 3072);
    QCOMPARE(torchtitan_flops_per_token(config, 16), 6.0 * 2376 + 6144);
  }

  void every_operation_is_part_of_a_step() {
    QCOMPARE(part_of(MatMul{}), StepPart::kMatMul);
    for (const Operation& o : {Operation(Attention{}), Operation(AttentionBackward{})}) {
      QCOMPARE(part_of(o), StepPart::kAttention);
    }
    for (const Operation& o :
         {Operation(Fill{}), Operation(Convert{}), Operation(Embed{}), Operation(EmbedBackward{}), Operation(RmsNorm{}),
          Operation(RmsNormBackward{}), Operation(Rope{}), Operation(Swiglu{}), Operation(SwigluBackward{})}) {
      QCOMPARE(part_of(o), StepPart::kElementwise);
    }
    QCOMPARE(part_of(CrossEntropy{}), StepPart::kLoss);
    for (const Operation& o : {Operation(SquaredNorm{}), Operation(ClipScale{}), Operation(AdamW{})}) {
      QCOMPARE(part_of(o), StepPart::kOptimiser);
    }
    for (const Operation& o : {Operation(AllGather{}), Operation(ReduceScatter{}), Operation(AllReduce{})}) {
      QCOMPARE(part_of(o), StepPart::kCommunication);
    }
  }
};

QTEST_APPLESS_MAIN(FlopsTest)
#include "flops_test.moc"
