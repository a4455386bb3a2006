// Sources with weights: which source a position is of, and which of its sequences.
#include "net/data/mixture.h"

#include <QtTest>
#include <map>
#include <set>

#include "net/data/sequence_map.h"

using namespace atl;

namespace {

constexpr std::uint64_t kFar = 100'000'000;

MixtureWeights weights(const std::vector<double>& shares) { return mixture_weights(shares).value(); }
Mixture mixture(const std::vector<MixtureEra>& eras) { return Mixture::create(eras).value(); }

}  // namespace

class MixtureTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void every_stretch_has_each_source_in_its_share_data();
  void every_stretch_has_each_source_in_its_share();
  void a_source_is_read_in_its_order_and_nothing_is_left_out();
  void weights_that_change_begin_where_they_are_told_to();
  void an_era_without_positions_changes_nothing();
  void shares_that_are_none_are_refused_data();
  void shares_that_are_none_are_refused();
  void eras_that_do_not_follow_one_another_are_refused();
  void shares_have_names();
  void in_an_epoch_no_sequence_comes_twice_data();
  void in_an_epoch_no_sequence_comes_twice();
  void the_order_is_the_same_on_every_machine();
  void a_stretch_of_the_order_lies_in_few_chunks();
};

void MixtureTest::every_stretch_has_each_source_in_its_share_data() {
  QTest::addColumn<QList<double>>("shares");
  QTest::newRow("INTELLECT-1's") << QList<double>{0.55, 0.1, 0.2, 0.1, 0.05};
  QTest::newRow("one is rare") << QList<double>{0.999, 0.001};
  QTest::newRow("one has none") << QList<double>{1, 0, 2};
  QList<double> many;
  for (int i = 1; i <= 64; ++i) many << i;
  QTest::newRow("as many as there may be") << many;
}

void MixtureTest::every_stretch_has_each_source_in_its_share() {
  QFETCH(const QList<double>, shares);
  const MixtureWeights parts = weights({shares.begin(), shares.end()});
  const Mixture mix = mixture({{0, parts}});

  for (const auto& [from, to] : {std::pair<std::uint64_t, std::uint64_t>{0, kFar},
                                 {kFar, kFar + 100'000},
                                 {std::uint64_t{1} << 50, (std::uint64_t{1} << 50) + 12'345}}) {
    const auto before = mix.counts_before(from), after = mix.counts_before(to);
    std::uint64_t all = 0;
    for (std::size_t source = 0; source < parts.size(); ++source) {
      const double exact = static_cast<double>(to - from) * parts[source] / kMixtureParts;
      const auto count = static_cast<double>(after[source] - before[source]);
      // One position a level of the tree, at each end; the shares of 2^32 are rounded.
      QVERIFY2(std::abs(count - exact) <= 2 * 6 + static_cast<double>(to - from) * 1e-8,
               qPrintable(QString("source %1: %2, not %3").arg(source).arg(count).arg(exact)));
      all += after[source] - before[source];
    }
    QCOMPARE(all, to - from);
  }
}

void MixtureTest::a_source_is_read_in_its_order_and_nothing_is_left_out() {
  const Mixture mix = mixture({{0, weights({0.55, 0.1, 0.2, 0.1, 0.05})}});
  std::vector<std::uint64_t> next(5, 0);

  for (std::uint64_t position = 0; position < 2'000'000; ++position) {
    const Mixture::Place place = mix.at(position);
    QCOMPARE(place.index, next[place.source]);
    ++next[place.source];
  }

  QCOMPARE(next, mix.counts_before(2'000'000));
}

void MixtureTest::weights_that_change_begin_where_they_are_told_to() {
  const Mixture before = mixture({{0, weights({3, 1})}});
  const Mixture changed = mixture({{0, weights({3, 1})}, {1000, weights({1, 9})}, {5000, weights({0, 1})}});

  std::vector<std::uint64_t> next(2, 0);
  for (std::uint64_t position = 0; position < 6000; ++position) {
    const Mixture::Place place = changed.at(position);
    if (position < 1000) QCOMPARE(place, before.at(position));
    if (position >= 5000) QCOMPARE(place.source, 1u);
    QCOMPARE(place.index, next[place.source]++);  // no source begins again, or leaves something out
  }
  QVERIFY(next[0] >= 750 + 399 && next[0] <= 750 + 400);
}

void MixtureTest::an_era_without_positions_changes_nothing() {
  const Mixture once = mixture({{0, weights({3, 1})}, {1000, weights({1, 9})}});
  const Mixture twice = mixture({{0, weights({3, 1})}, {1000, weights({1, 1})}, {1000, weights({1, 9})}});

  for (std::uint64_t position = 0; position < 3000; ++position) QCOMPARE(twice.at(position), once.at(position));
}

void MixtureTest::shares_that_are_none_are_refused_data() {
  QTest::addColumn<QList<double>>("shares");
  QTest::newRow("all are 0") << QList<double>{0, 0};
  QTest::newRow("negative") << QList<double>{1, -0.5};
  QTest::newRow("no number") << QList<double>{1, std::nan("")};
  QTest::newRow("endless") << QList<double>{1, HUGE_VAL};
  QTest::newRow("none") << QList<double>{};
  QTest::newRow("too many") << QList<double>(65, 1);
}

void MixtureTest::shares_that_are_none_are_refused() {
  QFETCH(const QList<double>, shares);

  QVERIFY(!mixture_weights({shares.begin(), shares.end()}).ok());
}

void MixtureTest::eras_that_do_not_follow_one_another_are_refused() {
  const MixtureWeights two = weights({1, 1}), three = weights({1, 1, 1});

  QVERIFY(!Mixture::create({}).ok());
  QVERIFY(!Mixture::create({{5, two}}).ok());
  QVERIFY(!Mixture::create({{0, two}, {9, two}, {8, two}}).ok());
  QVERIFY(!Mixture::create({{0, two}, {9, three}}).ok());
  QVERIFY(!Mixture::create({{0, {1, 2}}}).ok());
}

void MixtureTest::shares_have_names() {
  const std::vector<std::string> names{"web", "code", "math"};
  const auto shares = parse_named_shares("code=1,web=3");
  QVERIFY(shares.ok());

  QCOMPARE(describe_weights(names, weights_of(names, *shares).value()), std::string("web=0.75,code=0.25,math=0"));
  QVERIFY(weights_of(names, parse_named_shares("wiki=1").value()).error().message.find("wiki") != std::string::npos);
  for (const char* wrong : {"web", "web=", "web=x", "web=-1", "web=1,web=2", "=1", "web=1 ", "web=nan"}) {
    QVERIFY2(!parse_named_shares(wrong).ok(), wrong);
  }
}

void MixtureTest::in_an_epoch_no_sequence_comes_twice_data() {
  QTest::addColumn<quint64>("tokens");
  QTest::newRow("a single sequence") << quint64{101};
  QTest::newRow("less than a chunk") << quint64{700};
  QTest::newRow("one chunk") << quint64{1024};
  QTest::newRow("one chunk and its next token") << quint64{1025};
  QTest::newRow("a window and more") << quint64{40'000};
  QTest::newRow("many windows, the last chunk short") << quint64{1'000'003};
}

void MixtureTest::in_an_epoch_no_sequence_comes_twice() {
  QFETCH(const quint64, tokens);
  const SequenceMap map(7, 3, {tokens, 1024, 100});
  std::vector<std::vector<std::pair<std::uint64_t, std::uint32_t>>> epochs(2);

  for (std::uint64_t i = 0; i < 2 * map.sequences(); ++i) {
    const SequencePlace place = map.at(i);
    const std::uint64_t end = place.chunk * 1024 + place.sequence * 100 + 101;
    QVERIFY(end <= tokens);                       // its last label is there
    QVERIFY(place.sequence * 100 + 100 <= 1024);  // its inputs are in one chunk
    epochs[i / map.sequences()].emplace_back(place.chunk, place.sequence);
  }

  QVERIFY(map.sequences() > 0);
  for (const auto& epoch : epochs) QCOMPARE(std::set(epoch.begin(), epoch.end()).size(), map.sequences());
  if (map.sequences() > 20) QVERIFY(epochs[0] != epochs[1]);
}

// Frozen: islands of one run, of whatever versions, read the same.
void MixtureTest::the_order_is_the_same_on_every_machine() {
  const SequenceMap map(1, 2, {200'000'000'000, 262'144, 2048});
  std::vector<std::uint64_t> order;
  for (std::uint64_t i : {0ull, 1ull, 2047ull, 2048ull, 97'656'249ull, 97'656'250ull}) {
    order.push_back(map.at(i).chunk * 1000 + map.at(i).sequence);
  }
  QCOMPARE(order, (std::vector<std::uint64_t>{448864060, 380370031, 432413007, 161875013, 257683036, 114265061}));
}

// Of 12,800 sequences, 128 a chunk: 100 chunks, and the windows' rests.
void MixtureTest::a_stretch_of_the_order_lies_in_few_chunks() {
  const SequenceMap map(1, 0, {200'000'000'000, 262'144, 2048});
  for (std::uint64_t first : {0ull, 1'000'003ull, 50'000'000ull}) {
    std::set<std::uint64_t> chunks;
    for (std::uint64_t i = 0; i < 12'800; ++i) chunks.insert(map.at(first + i).chunk);
    QVERIFY2(chunks.size() <= 100 + 2 * kWindowChunks, qPrintable(QString::number(chunks.size())));
  }
}

QTEST_GUILESS_MAIN(MixtureTest)
#include "mixture_test.moc"
