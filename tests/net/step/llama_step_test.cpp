// The programs of a Llama step, as lists: what they touch was written before, ranks meet in the same collectives, and
// what they take of memory is what was promised. No memory of the size of a model is taken here.
#include "net/step/llama_step.h"

#include <QtTest>

#include <algorithm>
#include <map>

#include "net/base/file.h"
#include "net/step/operands.h"

namespace {

using namespace atl;

ModelConfig preset(const std::string& name) {
  return model_config_from_json(read_file(std::string(ATOLL_MODEL_PRESETS_DIR "/") + name + ".json").value()).value();
}

ModelConfig small_model(bool tied) {
  ModelConfig config = preset("demo");
  config.num_hidden_layers = 6;
  config.tie_word_embeddings = tied;
  return config;
}

constexpr std::array kModes{Recompute::kNone, Recompute::kCheap, Recompute::kAll};
constexpr std::array kModeNames{"none", "cheap", "all"};

StepTraits beside_each_other() {
  StepTraits traits = cpu_step_traits(1);
  traits.overlaps = true;
  return traits;
}

// As a GPU asks: wide slices of logits, attention without scratch.
StepTraits gpu_traits() {
  return {.kind = DeviceKind::kCuda,
          .attention_scratch = [](const AttentionShape&, DType, int) -> std::int64_t { return 0; },
          .most_logits = std::int64_t{1} << 28,
          .overlaps = true};
}

// What is trained: everything; the upper blocks, with products that are cut; some of each kind down to the table.
const std::vector<std::vector<std::string>> kTrainOnly{
    {},
    {"model.layers.5.*", "*.4.self_attn.q_proj.weight", "*.4.self_attn.v_proj.weight", "*.4.mlp.down_proj.weight"},
    {"*.2.self_attn.v_proj.weight", "*.3.mlp.up_proj.weight", "*.3.input_layernorm.weight",
     "model.embed_tokens.weight"},
    {"*.1.self_attn.o_proj.weight", "*.post_attention_layernorm.weight"},
    {"model.norm.weight"}};

// All ways in which a step can be put together.
std::vector<StepOptions> all_options_of(const std::vector<std::string>& train_only) {
  std::vector<StepOptions> all;
  for (const int ranks : {1, 2, 3, 8}) {
    for (const bool kept : {false, true}) {
      for (const Recompute recompute : kModes) {
        for (const bool overlaps : {false, true}) {
          for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
            StepTraits traits = cpu_step_traits(2);
            traits.overlaps = traits.reduce_scatter_scratch = overlaps;
            traits.most_logits = 257 * 20;  // several slices, the last of them smaller
            all.push_back({.ranks = ranks,
                           .precision = precision,
                           .recompute = recompute,
                           .keep_gathered = kept,
                           .attention = ranks == 2 ? AttentionScope::kDocument : AttentionScope::kPacked,
                           .train_only = train_only,
                           .traits = traits});
          }
        }
      }
    }
  }
  return all;
}

std::vector<StepOptions> all_options() {
  std::vector<StepOptions> all;
  for (const auto& train_only : kTrainOnly) {
    for (const StepOptions& options : all_options_of(train_only)) all.push_back(options);
  }
  return all;
}

// Bytes of the arenas that something was written to.
class Written {
 public:
  void forget(Arena arena) { arenas_[static_cast<std::size_t>(arena)].clear(); }
  void add(const Tensor& t) { add(t.arena, t.byte, t.byte + t.extent_bytes()); }
  bool has(const Tensor& t) const { return has(t.arena, t.byte, t.byte + t.extent_bytes()); }

 private:
  void add(Arena arena, std::int64_t begin, std::int64_t end) {
    if (begin >= end) return;
    auto& ranges = arenas_[static_cast<std::size_t>(arena)];
    auto it = ranges.upper_bound(begin);
    if (it != ranges.begin() && std::prev(it)->second >= begin) --it;
    while (it != ranges.end() && it->first <= end) {
      begin = std::min(begin, it->first);
      end = std::max(end, it->second);
      it = ranges.erase(it);
    }
    ranges.emplace(begin, end);
  }
  bool has(Arena arena, std::int64_t begin, std::int64_t end) const {
    if (begin >= end) return true;
    const auto& ranges = arenas_[static_cast<std::size_t>(arena)];
    const auto it = ranges.upper_bound(begin);
    return it != ranges.begin() && std::prev(it)->second >= end;
  }
  std::array<std::map<std::int64_t, std::int64_t>, kArenas> arenas_;
};

// Does it ever read what is not among `written`, nor written by itself? Adds what it writes.
bool reads_what_is_there(const Program& program, Written& written) {
  bool all = true;
  for (const ProgramStep& step : program.steps()) {
    for_each_operand(step.operation, [&](const Tensor& t, Access access) {
      if (access != Access::kWrite) all = all && written.has(t);
    });
    for_each_operand(step.operation, [&](const Tensor& t, Access access) {
      if (access != Access::kRead) written.add(t);
    });
  }
  return all;
}

// What a rank does with the others: "AllGather of 12, ...".
QStringList collectives_of(const Program& program) {
  QStringList all;
  for (const ProgramStep& step : program.steps()) {
    const auto note = [&](const char* name, const Tensor& t) { all << QString("%1 %2").arg(name).arg(t.numel()); };
    if (const auto* gather = std::get_if<AllGather>(&step.operation)) note("gather", gather->full);
    if (const auto* scatter = std::get_if<ReduceScatter>(&step.operation)) note("scatter", scatter->full);
    if (const auto* reduce = std::get_if<AllReduce>(&step.operation)) note("reduce", reduce->values);
  }
  return all;
}

// The most bytes of whole units, gathered or of gradients, that are alive at one operation.
std::int64_t most_unsharded(const Program& program) {
  std::int64_t most = 0;
  for (int at = 0; at < static_cast<int>(program.steps().size()); ++at) {
    std::int64_t alive = 0;
    for (const StepBuffer& b : program.buffers()) {
      const bool unit = b.name == "gathered unit" || b.name == "whole gradient";
      if (unit && b.first <= at && at <= b.last) alive += b.bytes;
    }
    most = std::max(most, alive);
  }
  return most;
}

// Seconds until both streams have done two runs of a program, where products and collectives take time in proportion to
// their work and everything else takes none.
struct Timing {
  double compute = 0;  // of the products alone
  double whole = 0;
};

Timing time_of(const Program& program, double seconds_per_product, double seconds_per_byte) {
  std::array<double, kStreams> now{};
  std::vector<double> recorded(static_cast<std::size_t>(program.events()), 0.0);
  Timing timing;
  for (int run = 0; run < 2; ++run) {
    for (const ProgramStep& step : program.steps()) {
      double& mine = now[static_cast<std::size_t>(step.stream)];
      for (const StepWait& wait : step.waits) mine = std::max(mine, recorded[static_cast<std::size_t>(wait.event)]);
      if (const auto* product = std::get_if<MatMul>(&step.operation)) {
        const std::int64_t k = product->transpose_a ? product->a.rows : product->a.columns;
        const double seconds = static_cast<double>(product->out.numel() * k) * seconds_per_product;
        timing.compute += seconds;
        mine += seconds;
      } else if (step.stream == StreamId::kCollective) {
        for_each_operand(step.operation, [&](const Tensor& t, Access) {
          mine += static_cast<double>(t.extent_bytes()) * seconds_per_byte;
        });
      }
      if (step.event >= 0) recorded[static_cast<std::size_t>(step.event)] = mine;
    }
  }
  timing.whole = *std::ranges::max_element(now);
  return timing;
}

}  // namespace

class LlamaStepTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void operands_lie_inside_their_buffers_while_these_are_alive();
  void nothing_is_read_that_was_not_written();
  void ranks_meet_in_the_same_collectives_however_many_sequences_they_have();
  void collectives_and_nothing_else_run_beside_computing();
  void one_rank_waits_for_nobody();
  void unsharded_bytes_are_those_of_a_few_blocks_data();
  void unsharded_bytes_are_those_of_a_few_blocks();
  void less_is_kept_where_more_is_computed_again();
  void what_is_frozen_has_no_optimiser_state_and_makes_no_work();
  void collectives_of_a_block_hide_behind_computing_one();
  void presets_fit_gpus_of_80_gb_data();
  void presets_fit_gpus_of_80_gb();
};

void LlamaStepTest::operands_lie_inside_their_buffers_while_these_are_alive() {
  for (const StepOptions& options : all_options()) {
    const LlamaStep step(small_model(options.ranks % 2 == 0), options);
    for (const Program& program :
         {step.begin(), step.micro_batch(3, 16, true), step.micro_batch(3, 16, false), step.micro_batch(0, 16, false),
          step.reduce(), step.update(), step.evaluate(3, 16), step.logits(3, 16, false), step.logits(3, 16, true)}) {
      for (std::size_t i = 0; i < program.steps().size(); ++i) {
        for_each_operand(program.steps()[i].operation, [&](const Tensor& t, Access) {
          QVERIFY(t.byte >= 0 && t.byte % size_of(t.dtype) == 0);
          if (t.arena == Arena::kKept) {
            const auto& whole = step.buffers().buffers()[static_cast<std::size_t>(t.buffer)];
            QVERIFY(whole.byte <= t.byte && t.byte + t.extent_bytes() <= whole.byte + whole.bytes);
          } else {
            const StepBuffer& whole = program.buffers()[static_cast<std::size_t>(t.buffer)];
            QVERIFY(whole.byte <= t.byte && t.byte + t.extent_bytes() <= whole.byte + whole.bytes);
            QVERIFY(whole.byte + whole.bytes <= program.step_bytes());
            QVERIFY(whole.first <= static_cast<int>(i) && static_cast<int>(i) <= whole.last);
          }
        });
      }
    }
  }
}

// Of a whole step with two micro-batches. Gradients are read by the reduction, so that the first micro-batch has to
// begin every one of them; but for padding, which is zero from the beginning where they are kept whole.
void LlamaStepTest::nothing_is_read_that_was_not_written() {
  for (const StepOptions& options : all_options()) {
    const LlamaStep step(small_model(options.ranks % 2 == 0), options);
    const KeptTensors& kept = step.kept();
    for (const std::int64_t sequences : {3, 0}) {
      if (options.ranks == 1 && sequences == 0) continue;  // a batch is not empty
      Written written;
      for (const Tensor& t :
           {kept.parameters, kept.weights, kept.first_moment, kept.second_moment, kept.scalars, kept.sums}) {
        written.add(t);
      }
      for (std::size_t u = 0; kept.full_gradients.numel() > 0 && u < step.layout().units.size(); ++u) {
        const FlatPart& part = step.part(u, /*trained=*/true);
        written.add(kept.full_gradients.view(part.offset * options.ranks + part.numel, 1,
                                             part.shard * options.ranks - part.numel));
      }

      QVERIFY(reads_what_is_there(step.begin(), written));
      for (const bool first : {true, false}) {
        const Program pass = step.micro_batch(sequences, 16, first);
        written.forget(Arena::kStep);
        if (sequences > 0) {
          for (const char* name : {"tokens", "labels", "order", "cosines", "sines"}) written.add(pass.input(name));
          if (options.attention == AttentionScope::kDocument) written.add(pass.input("starts"));
        }
        QVERIFY(reads_what_is_there(pass, written));
      }
      written.forget(Arena::kStep);
      QVERIFY(reads_what_is_there(step.reduce(), written));
      QVERIFY(reads_what_is_there(step.update(), written));
    }
  }
}

// Else one would wait for the others for good.
void LlamaStepTest::ranks_meet_in_the_same_collectives_however_many_sequences_they_have() {
  for (const StepOptions& options : all_options()) {
    const LlamaStep step(small_model(options.ranks % 2 == 0), options);
    for (const bool first : {true, false}) {
      const QStringList expected = collectives_of(step.micro_batch(3, 16, first));
      QCOMPARE(expected.isEmpty(), options.ranks == 1 || options.keep_gathered);
      QCOMPARE(collectives_of(step.micro_batch(1, 16, first)), expected);
      QCOMPARE(collectives_of(step.micro_batch(0, 16, first)), expected);
    }
    QCOMPARE(collectives_of(step.evaluate(0, 16)), collectives_of(step.evaluate(2, 16)));
    QCOMPARE(collectives_of(step.logits(0, 16, true)), collectives_of(step.logits(1, 16, true)));
    QCOMPARE(collectives_of(step.logits(0, 16, false)), collectives_of(step.logits(1, 16, false)));
  }
}

void LlamaStepTest::collectives_and_nothing_else_run_beside_computing() {
  for (const StepOptions& options : all_options()) {
    const LlamaStep step(small_model(true), options);
    for (const Program& program : {step.begin(), step.micro_batch(3, 16, true), step.reduce(), step.update(),
                                   step.evaluate(3, 16), step.logits(3, 16, true), step.reduce_sums()}) {
      for (const ProgramStep& s : program.steps()) {
        const bool collective = std::holds_alternative<AllGather>(s.operation) ||
                                std::holds_alternative<ReduceScatter>(s.operation) ||
                                std::holds_alternative<AllReduce>(s.operation);
        QCOMPARE(s.stream, collective ? StreamId::kCollective : StreamId::kCompute);
        QVERIFY(!collective || options.ranks > 1);
      }
    }
  }
}

void LlamaStepTest::one_rank_waits_for_nobody() {
  const LlamaStep step(small_model(false), {.traits = beside_each_other()});

  for (const Program& program : {step.micro_batch(3, 16, true), step.micro_batch(3, 16, false), step.reduce()}) {
    QCOMPARE(program.events(), 0);
  }
}

void LlamaStepTest::unsharded_bytes_are_those_of_a_few_blocks_data() {
  QTest::addColumn<bool>("tied");
  QTest::addColumn<bool>("overlaps");
  for (const bool tied : {true, false}) {
    for (const bool overlaps : {false, true}) {
      QTest::addRow("%s, %s", tied ? "tied" : "untied", overlaps ? "beside each other" : "one after the other")
          << tied << overlaps;
    }
  }
}

// A block's parameters and gradients; where collectives run beside computing, those of its neighbour too. And both
// tables; or, tied, the table and its gradient.
void LlamaStepTest::unsharded_bytes_are_those_of_a_few_blocks() {
  QFETCH(const bool, tied);
  QFETCH(const bool, overlaps);
  for (const Recompute recompute : kModes) {
    StepTraits traits = cpu_step_traits(1);
    traits.overlaps = overlaps;
    const ModelConfig config = small_model(tied);
    const LlamaStep step(config, {.ranks = 4, .recompute = recompute, .traits = traits});
    std::int64_t block = step.padded_numel(1);
    const std::int64_t tables = 2 * config.vocab_size * config.hidden_size;
    const std::int64_t most = 4 * ((overlaps ? 4 : 2) * block + tables);

    for (const bool first : {true, false}) {
      const std::int64_t unsharded = most_unsharded(step.micro_batch(2, 16, first));
      qInfo("%.2f of it", static_cast<double>(unsharded) / static_cast<double>(most));
      QVERIFY2(unsharded <= most, qPrintable(QString("%1 of %2").arg(unsharded).arg(most)));
      QVERIFY(unsharded > 0);
    }
    QVERIFY(most_unsharded(step.evaluate(2, 16)) <= most);
  }
}

void LlamaStepTest::less_is_kept_where_more_is_computed_again() {
  const auto bytes = [](Recompute recompute) {
    const LlamaStep step(preset("150m"),
                         {.precision = Precision::kBf16, .recompute = recompute, .traits = gpu_traits()});
    return step.micro_batch(4, 1024, false).step_bytes();
  };

  QVERIFY(bytes(Recompute::kAll) < bytes(Recompute::kCheap));
  QVERIFY(bytes(Recompute::kCheap) < bytes(Recompute::kNone));
}

// The upper two of six blocks are trained: the backward pass ends there, and nothing below leaves anything for it.
void LlamaStepTest::what_is_frozen_has_no_optimiser_state_and_makes_no_work() {
  const ModelConfig config = small_model(true);
  const auto products = [](const Program& program) {
    return std::ranges::count_if(
        program.steps(), [](const ProgramStep& step) { return std::holds_alternative<MatMul>(step.operation); });
  };
  const auto count = [&](const std::vector<std::string>& train_only) {
    const LlamaStep step(config, {.train_only = train_only, .traits = cpu_step_traits(1)});
    return products(step.micro_batch(2, 16, true));
  };
  const LlamaStep whole(config, {.traits = cpu_step_traits(1)});
  const LlamaStep upper(config, {.train_only = {"model.layers.4.*", "model.layers.5.*"}, .traits = cpu_step_traits(1)});

  const std::int64_t block = whole.layout().units[1].numel;
  QVERIFY(upper.trained_shard_numel() >= 2 * block && upper.trained_shard_numel() < 2 * block + 2 * 32);
  QCOMPARE(upper.shard_numel(), whole.shard_numel());
  for (const Tensor& state : {upper.kept().gradients, upper.kept().first_moment, upper.kept().second_moment}) {
    QCOMPARE(state.numel(), upper.trained_shard_numel());
  }
  // A block: 4 products forward, 4 + 4 backward; without a head and a table that are trained, a product less.
  QCOMPARE(count({"model.layers.4.*", "model.layers.5.*"}), count({}) - 4 * 8 - 1);
  QVERIFY(upper.micro_batch(2, 16, true).step_bytes() < whole.micro_batch(2, 16, true).step_bytes());
  // One matrix of the last block, and no further: the head's two products, and its own.
  QCOMPARE(count({"model.layers.5.mlp.down_proj.weight"}), 6 * 4 + 2 + 1);
}

// What stays is the embedding's: its gather at the beginning and its reduction at the end have no block to hide behind.
void LlamaStepTest::collectives_of_a_block_hide_behind_computing_one() {
  const ModelConfig config = preset("10b");
  for (const Recompute recompute : kModes) {
    const auto idle = [&](bool overlaps) {
      StepTraits traits = gpu_traits();
      traits.overlaps = overlaps;
      const LlamaStep step(config,
                           {.ranks = 8, .precision = Precision::kBf16, .recompute = recompute, .traits = traits});
      // A block's products take 10 forward and 20 backward; its collectives, of the shard and the whole, 6 and 6 + 12.
      const double block = static_cast<double>(step.padded_numel(1));
      const Timing timing = time_of(step.micro_batch(1, 8192, false), 10 / (block * 8192), 6 / (block * 2 * 9 / 8));
      return timing.whole / timing.compute - 1;
    };

    const double beside = idle(true), after = idle(false);

    qInfo("recompute %s: %.3f of the products' time beside them, %.3f one after the other",
          kModeNames[static_cast<std::size_t>(recompute)], beside, after);
    QVERIFY(beside < 0.08);
    QVERIFY(after > 0.2);
  }
}

void LlamaStepTest::presets_fit_gpus_of_80_gb_data() {
  QTest::addColumn<QString>("model");
  QTest::addColumn<int>("ranks");
  QTest::addColumn<int>("length");
  QTest::addColumn<bool>("kept");
  QTest::newRow("10b on eight") << "10b" << 8 << 8192 << false;
  QTest::newRow("1b on one") << "1b" << 1 << 4096 << false;
  QTest::newRow("1b on eight") << "1b" << 8 << 4096 << false;
  QTest::newRow("1b on eight, kept gathered") << "1b" << 8 << 4096 << true;
  QTest::newRow("150m on one") << "150m" << 1 << 1024 << false;
}

void LlamaStepTest::presets_fit_gpus_of_80_gb() {
  QFETCH(const QString, model);
  QFETCH(const int, ranks);
  QFETCH(const int, length);
  QFETCH(const bool, kept);
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (const Recompute recompute : kModes) {
    const LlamaStep step(preset(model.toStdString()), {.ranks = ranks,
                                                       .precision = Precision::kBf16,
                                                       .recompute = recompute,
                                                       .keep_gathered = kept,
                                                       .traits = gpu_traits()});
    const std::int64_t pass = step.micro_batch(1, length, false).step_bytes();
    qInfo("recompute %s: %.1f GB kept, %.1f GB for a sequence", kModeNames[static_cast<std::size_t>(recompute)],
          static_cast<double>(step.kept_bytes()) / 1e9, static_cast<double>(pass) / 1e9);
    least = std::min(least, step.kept_bytes() + pass);
  }
  QVERIFY(least <= 80'000'000'000);
}

QTEST_APPLESS_MAIN(LlamaStepTest)
#include "llama_step_test.moc"
