// What people see of the demo, from made-up states.
#include <QtTest>
#include <nlohmann/json.hpp>
#include <sstream>

#include "app/cli/demo/demo_history.h"
#include "app/cli/demo/demo_summary.h"
#include "app/cli/demo/demo_view.h"
#include "app/cli/run_preset.h"
#include "app/cli/text.h"

using namespace atl;

namespace {

const DemoRunFacts kFacts{.parameters = 800'000,
                          .text_bytes = 40'000'000,
                          .islands = 3,
                          .inner_steps = 20,
                          .tokens_per_step = 2048,
                          .limit_seconds = 240,
                          .limit_rounds = 0};

HubState state_after(std::uint32_t rounds) {
  HubState state;
  state.outer_step = rounds;
  state.round_open = true;
  state.phase = HubPhase::kTraining;
  for (std::uint32_t r = 0; r < rounds; ++r) state.rounds.push_back({r, 1, 3, 3 * 20 * 2048, 7, 2.5, true});
  for (const char* name : {"aitutaki", "bikini", "clipperton"}) {
    HubState::Island island;
    island.id = std::string("isl-") + name;
    island.name = name;
    island.state = HubIslandState::kTraining;
    island.phase = IslandPhase::kTraining;
    island.inner_step = 14;
    island.loss_nats = 1.892;
    island.tokens_per_second = 5712;
    island.tokens = rounds * 20 * 2048;
    island.bytes_sent = rounds * 1'000'000;
    island.inner_seconds = 9;
    island.sync_seconds = 1;
    state.islands.push_back(island);
  }
  state.first_validation = {0, 5.5};
  state.last_validation = {rounds, 1.5};
  return state;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

}  // namespace

class DemoViewTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void the_screen_fits_any_terminal_data();
  void the_screen_fits_any_terminal();
  void the_screen_names_what_matters();
  void no_colour_means_no_codes();
  void an_island_that_is_gone_stays_with_what_it_did();
  void the_summary_compares_bytes_with_data_parallel_training();
  void hashes_that_differ_once_are_never_called_equal();
  void figures_end_with_the_outer_step_of_the_model();
  void a_verdict_that_is_missing_is_not_called_false();
  void a_short_screen_keeps_the_lines_about_all_islands();
  void a_round_shows_the_validation_with_which_it_began();
  void one_island_is_singular_and_sends_nothing();
  void gaps_in_a_text_are_closed();
  void the_plot_falls_with_the_loss();
  void quantities_carry_their_unit();
  void what_a_model_writes_cannot_command_the_terminal();
  void presets_are_runs_that_validate();
};

void DemoViewTest::the_screen_fits_any_terminal_data() {
  QTest::addColumn<int>("columns");
  QTest::addColumn<int>("rows");
  for (const auto& [columns, rows] : {std::pair{20, 5}, {40, 10}, {80, 24}, {200, 60}})
    QTest::addRow("%d x %d", columns, rows) << columns << rows;
}

void DemoViewTest::the_screen_fits_any_terminal() {
  QFETCH(const int, columns);
  QFETCH(const int, rows);
  std::ostringstream stream;
  const Console console{.out = stream, .err = stream, .color = true, .unicode = true, .columns = columns};
  DemoHistory history;
  history.observe(state_after(0), 1);
  history.observe(state_after(12), 90);
  history.note("killed clipperton in the middle of round 12 (step 9 of 20); the others finish the round without it");

  const auto lines = demo_screen(history, kFacts, 90, rows, console);

  QVERIFY(static_cast<int>(lines.size()) <= rows);
  for (const std::string& line : lines)
    QVERIFY2(display_width(line) <= static_cast<std::size_t>(columns), line.c_str());
}

void DemoViewTest::the_screen_names_what_matters() {
  std::ostringstream stream;
  const Console console{.out = stream, .err = stream};
  DemoHistory history;
  history.observe(state_after(0), 1);
  history.observe(state_after(12), 85);

  const std::string screen = joined(demo_screen(history, kFacts, 85, 24, console));

  for (const char* part : {"0.80 M parameters", "round 13", "clipperton", "14/20", "1.892", "5,712", "90 %", "12.0 MB",
                           "validation loss 1.500 nats a byte after 12 rounds", "84 s", "4m00s"}) {
    QVERIFY2(screen.find(part) != std::string::npos, (std::string(part) + " is not in\n" + screen).c_str());
  }
}

void DemoViewTest::no_colour_means_no_codes() {
  std::ostringstream stream;
  const Console console{.out = stream, .err = stream, .color = false};
  DemoHistory history;
  history.observe(state_after(3), 1);

  QVERIFY(joined(demo_screen(history, kFacts, 5, 24, console)).find('\033') == std::string::npos);
  QVERIFY(to_text(summarise(history, kFacts), console).find('\033') == std::string::npos);
}

void DemoViewTest::an_island_that_is_gone_stays_with_what_it_did() {
  DemoHistory history;
  history.observe(state_after(4), 1);
  HubState later = state_after(5);
  later.islands[2] = {};  // what a hub says of the gone
  later.islands[2].id = "isl-clipperton";
  later.islands[2].state = HubIslandState::kGone;
  history.observe(later, 2);

  QCOMPARE(history.islands()[2].state, HubIslandState::kGone);
  QCOMPARE(history.islands()[2].name, std::string("clipperton"));
  QCOMPARE(history.bytes_sent(), 14'000'000u);
}

void DemoViewTest::the_summary_compares_bytes_with_data_parallel_training() {
  DemoHistory history;
  history.observe(state_after(0), 10);
  history.observe(state_after(10), 80);

  const DemoSummary summary = summarise(history, kFacts);
  const auto json = summary.to_json();

  // 10 rounds of 3 islands with 20 steps, each 2 * 2/3 * 4 bytes for 800,000 parameters.
  QCOMPARE(summary.bytes_data_parallel_fp32, 10 * 3 * 20 * 2.0 * 2 / 3 * 4 * 800'000);
  QCOMPARE(summary.bytes_sent, 30'000'000u);
  QCOMPARE(summary.compute_utilisation, 0.9);
  QCOMPARE(summary.tokens_per_second, 10 * 3 * 20 * 2048 / 70.0);
  QVERIFY(summary.outer_hashes_equal == true);
  for (const char* key : {"rounds", "first_validation_loss", "last_validation_loss", "tokens_per_second", "bytes_sent",
                          "bytes_data_parallel_fp32", "compute_utilisation", "outer_hashes_equal", "export_dir"}) {
    QVERIFY2(json.contains(key), key);
  }
}

void DemoViewTest::hashes_that_differ_once_are_never_called_equal() {
  DemoHistory history;
  HubState state = state_after(5);
  state.rounds[2].outer_hashes_equal = false;
  history.observe(state, 1);
  QVERIFY(history.outer_hashes_equal() == false);

  DemoHistory waiting;
  state = state_after(5);
  state.rounds[4].outer_hashes_equal.reset();
  waiting.observe(state, 1);
  QVERIFY(!waiting.outer_hashes_equal().has_value());
}

void DemoViewTest::figures_end_with_the_outer_step_of_the_model() {
  DemoHistory history;
  history.observe(state_after(0), 10);
  history.observe(state_after(4), 40);

  history.end_at(4);
  HubState later = state_after(6);
  later.islands[0].bytes_sent = 99'000'000;
  history.observe(later, 60);
  const DemoSummary summary = summarise(history, kFacts);

  QCOMPARE(summary.rounds, 4u);
  QCOMPARE(summary.tokens, 4u * 3 * 20 * 2048);
  QCOMPARE(summary.bytes_sent, 12'000'000u);
  QCOMPARE(summary.training_seconds, 30.0);
  QCOMPARE(history.validations().back().outer_step, 4u);
}

void DemoViewTest::a_verdict_that_is_missing_is_not_called_false() {
  DemoHistory history;
  HubState state = state_after(2);
  state.rounds[1].outer_hashes_equal.reset();
  history.observe(state, 1);

  QVERIFY(summarise(history, kFacts).to_json()["outer_hashes_equal"].is_null());
}

void DemoViewTest::a_short_screen_keeps_the_lines_about_all_islands() {
  std::ostringstream stream;
  const Console console{.out = stream, .err = stream};
  DemoHistory history;
  history.observe(state_after(0), 1);
  history.observe(state_after(12), 85);

  const auto lines = demo_screen(history, kFacts, 85, 6, console);
  const std::string screen = joined(lines);

  QVERIFY(lines.size() <= 6);
  QVERIFY2(screen.find("validation loss 1.500") != std::string::npos, screen.c_str());
  QVERIFY2(screen.find("waiting and ring") != std::string::npos, screen.c_str());
  QVERIFY(screen.find("clipperton") == std::string::npos);
}

void DemoViewTest::a_round_shows_the_validation_with_which_it_began() {
  DemoHistory history;
  history.observe(state_after(2), 1);

  QVERIFY(demo_round_line(history, history.rounds().at(0)).ends_with("validation loss before it 5.500"));
  QVERIFY(demo_round_line(history, history.rounds().at(1)).find("validation") == std::string::npos);
}

void DemoViewTest::one_island_is_singular_and_sends_nothing() {
  std::ostringstream stream;
  const Console console{.out = stream, .err = stream};
  DemoHistory history;
  HubState state = state_after(1);
  state.islands.resize(1);
  state.islands[0].bytes_sent = 0;
  state.rounds[0].members = 1;
  history.observe(state, 1);

  const std::string text = to_text(summarise(history, kFacts), console);

  QVERIFY2(text.find("1 round,") != std::string::npos, text.c_str());
  QVERIFY2(text.find("times as much") == std::string::npos, text.c_str());
  QVERIFY(demo_round_line(history, history.rounds().at(0)).find("1 island ") != std::string::npos);
}

void DemoViewTest::gaps_in_a_text_are_closed() {
  QCOMPARE(without_gaps("\n\n  a      b  \n\n   \n     c   \n"), std::string("a   b\n   c"));
}

void DemoViewTest::the_plot_falls_with_the_loss() {
  const auto plot = loss_plot({{0, 5.5}, {2, 3.0}, {4, 2.0}, {8, 1.5}}, 60, 6, false);

  QCOMPARE(plot.size(), 6u);
  QVERIFY(plot.front().find("5.500 |*") != std::string::npos);
  QVERIFY(plot.back().ends_with('*'));
  QVERIFY(loss_plot({{0, 5.5}}, 60, 6, false).empty());
}

void DemoViewTest::quantities_carry_their_unit() {
  QCOMPARE(format_count(0), std::string("0"));
  QCOMPARE(format_count(1234567), std::string("1,234,567"));
  QCOMPARE(format_bytes(999), std::string("999 B"));
  QCOMPARE(format_bytes(1.94e9), std::string("1.9 GB"));
  QCOMPARE(format_duration(38), std::string("38 s"));
  QCOMPARE(format_duration(250), std::string("4m10s"));
  QCOMPARE(format_rate(318'000), std::string("318k tok/s"));
  QCOMPARE(fit("añejo", 3), std::string("añe"));
}

void DemoViewTest::what_a_model_writes_cannot_command_the_terminal() {
  QCOMPARE(printable_lines("a\033[2Jb\r\x7f\nc"), std::string("a?[2Jb??\nc"));
  QCOMPARE(printable_lines("ä\xff\xc3(\xc2\x9b"
                           "5m€"),
           std::string("\u00e4?"
                       "?(?"
                       "5m€"));
}

void DemoViewTest::presets_are_runs_that_validate() {
  for (const std::string_view name : preset_names()) {
    const auto run = make_run(std::string(name), "test", {});
    QVERIFY2(run.ok(), run.ok() ? "" : run.error().message.c_str());
    QVERIFY(!run->model_json.empty());
  }
}

QTEST_APPLESS_MAIN(DemoViewTest)
#include "demo_view_test.moc"
