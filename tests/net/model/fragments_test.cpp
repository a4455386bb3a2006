#include "net/model/fragments.h"

#include <fmt/format.h>

#include <QtTest>
#include <algorithm>

#include "net/base/file.h"
#include "net/base/id.h"

using namespace atl;

namespace {

ParameterLayout preset(const std::string& name) {
  const std::string json = read_file(std::string(ATOLL_MODEL_PRESETS_DIR "/") + name + ".json").value();
  return canonical_layout(model_config_from_json(json).value());
}

ParameterLayout with_blocks(std::int64_t blocks) {
  ModelConfig config;
  config.vocab_size = 64;
  config.hidden_size = 8;
  config.intermediate_size = 16;
  config.num_hidden_layers = blocks;
  config.num_attention_heads = 2;
  config.num_key_value_heads = 1;
  config.head_dim = 4;
  return canonical_layout(config);
}

}  // namespace

class FragmentsTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void one_fragment_is_the_whole_model_in_one_range();
  void fragments_make_up_the_model_of_whole_units_data();
  void fragments_make_up_the_model_of_whole_units();
  void equal_blocks_come_to_the_fragments_in_turn();
  void fragments_are_the_same_on_every_island();
  void a_model_of_fewer_units_is_refused_data();
  void a_model_of_fewer_units_is_refused();
};

void FragmentsTest::one_fragment_is_the_whole_model_in_one_range() {
  const ParameterLayout layout = preset("demo");

  const auto fragments = fragments_of(layout, 1).value();

  QCOMPARE(fragments.size(), std::size_t{1});
  QCOMPARE(fragments[0].numel, layout.numel);
  QVERIFY((fragments[0].ranges == std::vector<ParameterRange>{{0, layout.numel}}));
}

void FragmentsTest::fragments_make_up_the_model_of_whole_units_data() {
  QTest::addColumn<QString>("model");
  QTest::addColumn<std::uint32_t>("count");
  for (const char* model : {"demo", "150m", "1b", "10b"}) {
    for (std::uint32_t count = 1; count <= kMaxFragments; ++count) {
      QTest::addRow("%s in %u", model, count) << model << count;
    }
  }
}

void FragmentsTest::fragments_make_up_the_model_of_whole_units() {
  QFETCH(const QString, model);
  QFETCH(const std::uint32_t, count);
  const ParameterLayout layout = preset(model.toStdString());

  const auto fragments = fragments_of(layout, count).value();

  QCOMPARE(fragments.size(), std::size_t{count});
  std::vector<ParameterRange> all;
  for (const Fragment& fragment : fragments) {
    std::int64_t numel = 0, end = -1;
    for (const ParameterRange& range : fragment.ranges) {
      QVERIFY(range.numel > 0 && range.offset > end);  // ascending, and two that touch are one
      end = range.offset + range.numel;
      numel += range.numel;
      all.push_back(range);
    }
    QCOMPARE(fragment.numel, numel);
    QVERIFY(numel > 0);
  }
  std::ranges::sort(all, {}, &ParameterRange::offset);
  std::int64_t end = 0;
  for (const ParameterRange& range : all) {
    QCOMPARE(range.offset, end);
    end += range.numel;
  }
  QCOMPARE(end, layout.numel);
  // A unit is of one fragment: no range begins within one.
  std::int64_t largest = 0;
  for (const ParameterUnit& unit : layout.units) {
    largest = std::max(largest, unit.numel);
    for (const ParameterRange& range : all) {
      QVERIFY(range.offset <= unit.offset || range.offset >= unit.offset + unit.numel);
    }
  }
  const auto [least, most] = std::ranges::minmax(fragments, {}, &Fragment::numel);
  QVERIFY(most.numel - least.numel <= largest);
}

void FragmentsTest::equal_blocks_come_to_the_fragments_in_turn() {
  const ParameterLayout layout = with_blocks(4);
  const auto fragments = fragments_of(layout, 2).value();

  // embedding 512, blocks of 592 each, norm and head 520: a block to each, again, then the head and the embedding.
  const auto& units = layout.units;
  QCOMPARE(units[1].numel, std::int64_t{592});
  QCOMPARE(fragments[0].numel, 2 * 592 + units[5].numel);
  QCOMPARE(fragments[1].numel, 2 * 592 + units[0].numel);
  QVERIFY(
      (fragments[0].ranges ==
       std::vector<ParameterRange>{{units[1].offset, 592}, {units[3].offset, 592}, {units[5].offset, units[5].numel}}));
  QVERIFY((fragments[1].ranges ==
           std::vector<ParameterRange>{{0, units[0].numel}, {units[2].offset, 592}, {units[4].offset, 592}}));
}

// Islands exchange no list of them: a change of these numbers is a change of protocol.
void FragmentsTest::fragments_are_the_same_on_every_island() {
  const ParameterLayout layout = preset("demo");
  const auto fragments = fragments_of(layout, 3).value();

  std::string text;
  for (const Fragment& fragment : fragments) {
    for (const ParameterRange& range : fragment.ranges) text += fmt::format("{}+{} ", range.offset, range.numel);
    text += "| ";
  }

  QCOMPARE(text, std::string("32896+196864 623488+196864 | 0+32896 229760+196864 | 426624+196864 820352+128 | "));
}

void FragmentsTest::a_model_of_fewer_units_is_refused_data() {
  QTest::addColumn<std::int64_t>("blocks");
  QTest::addColumn<std::uint32_t>("count");
  QTest::newRow("none") << std::int64_t{2} << 0u;
  QTest::newRow("one block, four fragments") << std::int64_t{1} << 4u;
}

void FragmentsTest::a_model_of_fewer_units_is_refused() {
  QFETCH(const std::int64_t, blocks);
  QFETCH(const std::uint32_t, count);
  const ParameterLayout layout = with_blocks(blocks);

  const auto refused = fragments_of(layout, count);

  QCOMPARE(refused.error().code, ErrorCode::kInvalidArgument);
  QVERIFY2(refused.error().message.find(std::to_string(layout.units.size()) + " parts") != std::string::npos,
           refused.error().message.c_str());
  QVERIFY(fragments_of(layout, static_cast<std::uint32_t>(layout.units.size())).ok());
}

QTEST_APPLESS_MAIN(FragmentsTest)
#include "fragments_test.moc"
