// An operation waits for those of the other stream that touch the same bytes, and for no more than it has to.
#include "net/step/hazards.h"

#include <QtTest>

namespace {

using namespace atl;

constexpr auto kCompute = StreamId::kCompute;
constexpr auto kCollective = StreamId::kCollective;

// Kept floats, so that places are given: [first, first + count).
Tensor floats(std::int64_t first, std::int64_t count) {
  return {.arena = Arena::kKept, .buffer = 0, .columns = count, .stride = count, .byte = 4 * first};
}

ProgramStep on(StreamId stream, Operation operation) { return {std::move(operation), stream, {}, -1}; }
ProgramStep writes(StreamId stream, std::int64_t first, std::int64_t count) {
  return on(stream, Fill{floats(first, count)});
}
// Reads the one, writes the other.
ProgramStep copies(StreamId stream, const Tensor& from, const Tensor& to) { return on(stream, AllGather{from, to}); }

// "0 3-" for operation 0 of this run and 3 of the one before, a word for each step.
QStringList waits_of(std::vector<ProgramStep> steps) {
  int events = 0;
  derive_waits(steps, events);
  QStringList all;
  for (const ProgramStep& step : steps) {
    QStringList waits;
    for (const StepWait& wait : step.waits) waits << QString::number(wait.of) + (wait.previous ? "-" : "");
    all << waits.join(' ');
  }
  return all;
}

}  // namespace

class HazardsTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void a_reader_waits_for_the_writer();
  void a_writer_waits_for_the_reader();
  void a_writer_waits_for_the_writer();
  void readers_wait_for_no_readers();
  void a_stream_does_not_wait_for_itself();
  void neighbouring_bytes_are_no_hazard();
  void a_part_of_the_bytes_is_enough();
  void arenas_have_nothing_in_common();
  void the_last_of_several_is_waited_for();
  void what_another_wait_brings_is_not_asked_for_again();
  void what_the_other_stream_has_waited_for_is_known();
  void the_next_run_waits_for_the_one_before();
  void each_operation_that_is_waited_for_has_one_event();
};

// In the next run the writer must not overwrite what is still read: "1-".
void HazardsTest::a_reader_waits_for_the_writer() {
  const QStringList waits = waits_of({writes(kCollective, 0, 4), copies(kCompute, floats(0, 4), floats(8, 4))});

  QCOMPARE(waits, QStringList({"1-", "0"}));
}

void HazardsTest::a_writer_waits_for_the_reader() {
  const QStringList waits = waits_of({copies(kCompute, floats(0, 4), floats(8, 4)), writes(kCollective, 0, 4)});

  QCOMPARE(waits, QStringList({"1-", "0"}));
}

void HazardsTest::a_writer_waits_for_the_writer() {
  const QStringList waits = waits_of({writes(kCompute, 0, 4), writes(kCollective, 0, 4)});

  QCOMPARE(waits, QStringList({"1-", "0"}));
}

void HazardsTest::readers_wait_for_no_readers() {
  const QStringList waits =
      waits_of({copies(kCompute, floats(0, 4), floats(8, 4)), copies(kCollective, floats(0, 4), floats(16, 4))});

  QCOMPARE(waits, QStringList({"", ""}));
}

void HazardsTest::a_stream_does_not_wait_for_itself() {
  const QStringList waits =
      waits_of({writes(kCompute, 0, 4), copies(kCompute, floats(0, 4), floats(8, 4)), writes(kCompute, 0, 4)});

  QCOMPARE(waits, QStringList({"", "", ""}));
}

void HazardsTest::neighbouring_bytes_are_no_hazard() {
  const QStringList waits = waits_of({writes(kCompute, 0, 4), writes(kCollective, 4, 4), writes(kCompute, 8, 4)});

  QCOMPARE(waits, QStringList({"", "", ""}));
}

void HazardsTest::a_part_of_the_bytes_is_enough() {
  // The first half was written by 0, the second by 1 of the same stream: the later one is the one to wait for.
  const QStringList waits =
      waits_of({writes(kCompute, 0, 4), writes(kCompute, 4, 4), copies(kCollective, floats(3, 2), floats(8, 2)),
                copies(kCollective, floats(0, 1), floats(16, 1))});

  QCOMPARE(waits, QStringList({"3-", "", "1", ""}));
}

void HazardsTest::arenas_have_nothing_in_common() {
  Tensor step = floats(0, 4);
  step.arena = Arena::kStep;

  const QStringList waits = waits_of({writes(kCompute, 0, 4), on(kCollective, Fill{step})});

  QCOMPARE(waits, QStringList({"", ""}));
}

void HazardsTest::the_last_of_several_is_waited_for() {
  const QStringList waits = waits_of({writes(kCompute, 0, 4), copies(kCompute, floats(0, 4), floats(8, 4)),
                                      copies(kCompute, floats(0, 2), floats(16, 2)), writes(kCollective, 0, 4)});

  QCOMPARE(waits, QStringList({"3-", "", "", "2"}));
}

// Operation 3 comes after 2 of its stream, which has waited for 1, before which 0 was.
void HazardsTest::what_another_wait_brings_is_not_asked_for_again() {
  const QStringList waits =
      waits_of({writes(kCompute, 0, 4), writes(kCompute, 4, 4), copies(kCollective, floats(4, 4), floats(8, 4)),
                copies(kCollective, floats(0, 4), floats(16, 4))});

  QCOMPARE(waits, QStringList({"3-", "", "1", ""}));
}

// Operation 2 waits for 1, and with it for all that 1 has waited for: then 3 does not ask for 1's stream again, and the
// next run's 0 is known by 2- to come after 1-.
void HazardsTest::what_the_other_stream_has_waited_for_is_known() {
  const QStringList waits = waits_of({writes(kCompute, 0, 4), copies(kCollective, floats(0, 4), floats(8, 4)),
                                      copies(kCompute, floats(8, 4), floats(16, 4)), writes(kCompute, 0, 2)});

  QCOMPARE(waits, QStringList({"", "0", "1", ""}));
}

// The one writes 0..4, which the other read in the run before; a run of its own does not have to wait for itself.
void HazardsTest::the_next_run_waits_for_the_one_before() {
  const QStringList waits = waits_of({writes(kCompute, 8, 4), writes(kCompute, 0, 4), writes(kCompute, 12, 4),
                                      copies(kCollective, floats(0, 4), floats(16, 4))});

  QCOMPARE(waits, QStringList({"", "3-", "", "1"}));
}

void HazardsTest::each_operation_that_is_waited_for_has_one_event() {
  std::vector<ProgramStep> steps{writes(kCompute, 0, 8), copies(kCollective, floats(0, 4), floats(8, 4)),
                                 copies(kCompute, floats(8, 4), floats(16, 4)), writes(kCompute, 24, 4)};
  int events = 0;

  derive_waits(steps, events);

  QCOMPARE(events, 2);
  QVERIFY(steps[0].event >= 0 && steps[1].event >= 0 && steps[0].event != steps[1].event);
  QCOMPARE(steps[2].event, -1);
  QCOMPARE(steps[3].event, -1);
  for (const ProgramStep& step : steps) {
    for (const StepWait& wait : step.waits) QCOMPARE(wait.event, steps[static_cast<std::size_t>(wait.of)].event);
  }
}

QTEST_APPLESS_MAIN(HazardsTest)
#include "hazards_test.moc"
