// What a token costs, against counts by hand and against the programs that are run; and which part of a step each
// operation is.
#include "net/step/flops.h"

#include <QtTest>

#include "net/model/train_only.h"
#include "net/step/llama_step.h"
#include "net/step/step_part.h"
#include "net/step/traits.h"

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
  config.max_position_embeddings = 16;
  return config;
}

constexpr std::int64_t kLength = 16;
using Patterns = std::vector<std::string>;

double papers(const ModelConfig& config, const Patterns& train_only = {}) {
  return flops_per_token(config, layout_of_training(config, train_only), kLength);
}
double torchtitans(const ModelConfig& config, const Patterns& train_only = {}) {
  return torchtitan_flops_per_token(config, layout_of_training(config, train_only), kLength);
}

// A token's, by the operations of the program that trains a sequence: products, and attention as if it were not causal.
double computed(const ModelConfig& config, const Patterns& train_only) {
  const LlamaStep step(config, {.train_only = train_only, .traits = cpu_step_traits(1)});
  const Program program = step.micro_batch(1, kLength, true);
  double flops = 0;
  for (const ProgramStep& each : program.steps()) {
    if (const auto* product = std::get_if<MatMul>(&each.operation)) {
      const std::int64_t depth = product->transpose_a ? product->a.rows : product->a.columns;
      flops += 2.0 * static_cast<double>(product->out.numel()) * static_cast<double>(depth);
    }
    const double scores = 4.0 * static_cast<double>(config.num_attention_heads * config.head_dim * kLength * kLength);
    if (std::holds_alternative<Attention>(each.operation)) flops += scores;
    if (std::holds_alternative<AttentionBackward>(each.operation)) flops += 2 * scores;
  }
  return flops / kLength;
}

// What torchtitan counts of norms as if they were products.
double most_of_norms(const ModelConfig& config) {
  return 6.0 * static_cast<double>((2 * config.num_hidden_layers + 1) * config.hidden_size);
}

}  // namespace

class FlopsTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  // 12 * 2 layers * 8 * 16 tokens = 3,072 of attention.
  void all_parameters_count_by_the_papers_formula() { QCOMPARE(papers(small_model()), 6.0 * 2792 + 3072); }

  void a_table_that_is_only_looked_up_does_not_count_by_torchtitans() {
    QCOMPARE(torchtitans(small_model()), 6.0 * 1992 + 3072);
  }

  void a_table_that_is_the_output_matrix_counts_once_by_both() {
    ModelConfig config = small_model();
    config.tie_word_embeddings = true;

    QCOMPARE(papers(config), 6.0 * 1992 + 3072);
    QCOMPARE(torchtitans(config), 6.0 * 1992 + 3072);
  }

  // Heads of 8: 128 + 64 + 64 + 128 of attention, 784 a layer, 2,376 in all; attention is twice as wide as the model.
  void heads_wider_than_the_model_count_by_their_width_in_torchtitans_alone() {
    ModelConfig config = small_model();
    config.tie_word_embeddings = true;
    config.head_dim = 8;

    QCOMPARE(papers(config), 6.0 * 2376 + 3072);
    QCOMPARE(torchtitans(config), 6.0 * 2376 + 6144);
  }

  // The second block and the head: of the first, 592 parameters and 1,536 of attention's operations, and of the table a
  // third each; of the second block's input nothing is wanted but through its own norm.
  void what_is_frozen_counts_as_far_as_it_is_computed() {
    const Patterns upper{"model.layers.1.*", "model.norm.weight", "lm_head.weight"};

    QCOMPARE(torchtitans(small_model(), upper), 2.0 * 592 + 6.0 * (1992 - 592) + 512 + 1536);
    QCOMPARE(papers(small_model(), upper), torchtitans(small_model(), upper) + 2.0 * 800);
  }

  // The last matrix of the last block: all goes forward; backward the head's input gradient and its norm's, and the
  // gradient of the matrix's 128 weights.
  void a_single_matrix_costs_what_leads_to_it() {
    QCOMPARE(torchtitans(small_model(), {"model.layers.1.mlp.down_proj.weight"}),
             2.0 * 1992 + 2.0 * 808 + 2.0 * 128 + 1024);
  }

  void what_is_counted_is_what_the_programs_compute_data() {
    QTest::addColumn<bool>("tied");
    QTest::addColumn<QStringList>("train_only");
    const std::pair<const char*, QStringList> all[] = {
        {"everything", {}},
        {"the upper block", {"model.layers.1.*"}},
        {"some of each block", {"*.0.self_attn.v_proj.weight", "*.1.mlp.up_proj.weight", "*.1.input_layernorm.weight"}},
        {"products that are cut", {"*.0.self_attn.o_proj.weight", "*.post_attention_layernorm.weight"}},
        {"the table", {"model.embed_tokens.weight"}},
        {"the last norm", {"model.norm.weight"}}};
    for (const auto& [name, patterns] : all) {
      QTest::addRow("%s", name) << false << patterns;
      QTest::addRow("%s, tied", name) << true << patterns;
    }
  }
  void what_is_counted_is_what_the_programs_compute() {
    QFETCH(const bool, tied);
    QFETCH(const QStringList, train_only);
    ModelConfig config = small_model();
    config.tie_word_embeddings = tied;
    Patterns patterns;
    for (const QString& pattern : train_only) patterns.push_back(pattern.toStdString());

    const double counted = torchtitans(config, patterns), products = computed(config, patterns);

    QVERIFY2(counted >= products && counted <= products + most_of_norms(config),
             qPrintable(QString("%1, and %2 computed").arg(counted).arg(products)));
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
