// What a pattern names, and what a run trains, averages and leaves alone by it.
#include "net/model/train_only.h"

#include <QtTest>

#include "net/model/fragments.h"

using namespace atl;

namespace {

ModelConfig small_model() {
  ModelConfig config;
  config.vocab_size = 64;
  config.hidden_size = 8;
  config.intermediate_size = 16;
  config.num_hidden_layers = 4;
  config.num_attention_heads = 2;
  config.num_key_value_heads = 1;
  config.head_dim = 4;
  return config;
}

}  // namespace

class TrainOnlyTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void a_pattern_names_all_of_a_name_data();
  void a_pattern_names_all_of_a_name();
  void a_pattern_of_many_stars_takes_no_time();
  void what_is_not_named_is_in_no_fragment();
  void a_pattern_that_names_nothing_is_refused_data();
  void a_pattern_that_names_nothing_is_refused();
  void more_fragments_than_trained_units_are_refused();
};

void TrainOnlyTest::a_pattern_names_all_of_a_name_data() {
  QTest::addColumn<QString>("pattern");
  QTest::addColumn<QString>("name");
  QTest::addColumn<bool>("matches");
  const auto row = [](const char* pattern, const char* name, bool matches) {
    QTest::addRow("%s of %s", pattern, name) << pattern << name << matches;
  };
  row("lm_head.weight", "lm_head.weight", true);
  row("lm_head", "lm_head.weight", false);
  row("*", "", true);
  row("", "", true);
  row("", "a", false);
  row("*.q_proj.weight", "model.layers.3.self_attn.q_proj.weight", true);
  row("*.q_proj.weight", "model.layers.3.self_attn.k_proj.weight", false);
  row("model.layers.?.*", "model.layers.3.mlp.up_proj.weight", true);
  row("model.layers.?.*", "model.layers.13.mlp.up_proj.weight", false);
  row("*a*b*", "xxaxxbxx", true);
  row("*a*b*", "xxbxxaxx", false);
  row("*ab", "aab", true);
  row("a*a", "a", false);
  row("??", "abc", false);
}

void TrainOnlyTest::a_pattern_names_all_of_a_name() {
  QFETCH(const QString, pattern);
  QFETCH(const QString, name);
  QFETCH(const bool, matches);

  QCOMPARE(glob_matches(pattern.toStdString(), name.toStdString()), matches);
}

// Where each star is tried at each place for each of the others, this ends with the sun.
void TrainOnlyTest::a_pattern_of_many_stars_takes_no_time() {
  std::string pattern;
  for (int i = 0; i < 60; ++i) pattern += "a*";

  QVERIFY(!glob_matches(pattern + "b", std::string(128, 'a')));
}

void TrainOnlyTest::what_is_not_named_is_in_no_fragment() {
  const ParameterLayout layout =
      layout_of_training(small_model(), {"*.1.self_attn.q_proj.weight", "*.1.self_attn.v_proj.weight", "*.3.mlp.*"});
  std::vector<bool> averaged(static_cast<std::size_t>(layout.numel));

  for (const std::uint32_t count : {1u, 2u}) {
    averaged.assign(averaged.size(), false);
    std::int64_t numel = 0;
    const std::vector<Fragment> fragments = fragments_of(layout, count).value();
    for (const Fragment& fragment : fragments) {
      std::int64_t of_ranges = 0;
      for (const ParameterRange& range : fragment.ranges) {
        std::fill_n(averaged.begin() + range.offset, range.numel, true);
        of_ranges += range.numel;
      }
      QCOMPARE(of_ranges, fragment.numel);
      numel += fragment.numel;
    }
    QCOMPARE(numel, trained_numel(layout));
  }

  int trained = 0;
  for (const ParameterInfo& parameter : layout.parameters) {
    const auto begin = averaged.begin() + parameter.offset;
    QVERIFY(std::all_of(begin, begin + parameter.numel, [&](bool each) { return each == parameter.trained; }));
    trained += parameter.trained ? 1 : 0;
  }
  QCOMPARE(trained, 5);
  // Gate, up and down lie side by side.
  const auto fragments = fragments_of(layout, 1).value();
  QCOMPARE(fragments[0].ranges.size(), std::size_t{3});
}

void TrainOnlyTest::a_pattern_that_names_nothing_is_refused_data() {
  QTest::addColumn<QString>("pattern");
  for (const char* pattern : {"model.layers.9.*", "", "q_proj", "model.layers.1.self_attn.q_proj"}) {
    QTest::newRow(pattern) << pattern;
  }
  QTest::newRow("longer than any name") << QString(200, '*');
}

void TrainOnlyTest::a_pattern_that_names_nothing_is_refused() {
  QFETCH(const QString, pattern);

  const Status checked = check_train_only(small_model(), {"*.mlp.*", pattern.toStdString()});

  QVERIFY(!checked.ok());
  QCOMPARE(checked.error().code, ErrorCode::kInvalidArgument);
  QVERIFY(checked.error().message.find("--train-only") != std::string::npos);
  QVERIFY(check_train_only(small_model(), {"*.mlp.*"}).ok());
  QVERIFY(check_train_only(small_model(), {}).ok());
}

void TrainOnlyTest::more_fragments_than_trained_units_are_refused() {
  const ParameterLayout layout = layout_of_training(small_model(), {"model.layers.1.*", "model.layers.2.*"});

  const auto refused = fragments_of(layout, 3);

  QVERIFY(fragments_of(layout, 2).ok());
  QVERIFY(!refused.ok());
  QVERIFY2(refused.error().message.find("of which 2 have something that is trained") != std::string::npos,
           refused.error().message.c_str());
}

QTEST_APPLESS_MAIN(TrainOnlyTest)
#include "train_only_test.moc"
