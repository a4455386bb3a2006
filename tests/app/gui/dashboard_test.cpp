// The pages of the dashboard: what they show of a run, and what they say when there is nothing to show.
#include <algorithm>

#include <QCheckBox>
#include <QClipboard>
#include <QComboBox>
#include <QListWidget>
#include <QProgressBar>
#include <QPushButton>
#include <QSlider>
#include <QTableView>
#include <QToolButton>
#include <QtTest>

#include "app/gui/island_text.h"
#include "app/gui/look/format.h"
#include "app/gui/parts/empty_state.h"
#include "app/gui/parts/gpu_panel.h"
#include "app/gui/parts/gpu_plot.h"
#include "app/gui/parts/notice.h"
#include "app/gui/parts/phase_bar.h"
#include "app/gui/parts/ring_geometry.h"
#include "app/gui/parts/ring_view.h"
#include "app/gui/parts/stat_tile.h"
#include "app/gui/plot/history_plot.h"
#include "tests/app/gui/gui_scene.h"
#include "tests/fakes/patience.h"

using namespace atl;
using namespace atl::test;

class DashboardTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() { QLocale::setDefault(QLocale::c()); }
  void init() { scene_ = std::make_unique<GuiScene>(); }
  void cleanup() { scene_.reset(); }

  // ---- Overview

  void the_overview_shows_the_figures_with_their_units() {
    open(PageId::kOverview);

    QTRY_COMPARE(tile("loss")->value(), QString("2.717"));
    QCOMPARE(tile("loss")->accessibleName(), QString("Loss: 2.717 nats per token, validation 2.830"));
    QCOMPARE(tile("speed")->value(), QString("3.54M"));
    QCOMPARE(tile("utilisation")->accessibleName(), QString("Utilisation: 38 % MFU, computing 87 % of the time"));
    QCOMPARE(tile("next_sync")->value(), QString("65 s"));
    QCOMPARE(scene_->text("tokens"), QString("37815386112"));
    QCOMPARE(scene_->text("rounds_accepted"), QString("42"));
    QCOMPARE(scene_->text("accepted"), QString("in round 42"));
    QCOMPARE(scene_->text("sent"), QString("11.8 GB"));
    QCOMPARE(scene_->text("time_trained"), QString("3 h 23 min"));
    QCOMPARE(scene_->text("outer_step"), QString("42"));
    QCOMPARE(scene_->text("safe"), QString("up to round 42"));
    QCOMPARE(scene_->text("disk"), QString("812 GB"));
    QVERIFY2(scene_->text("gpus").startsWith("8 \u00D7 H100"), qPrintable(scene_->text("gpus")));
    QCOMPARE(scene_->find<QProgressBar>("round_bar")->value(), 371);
  }

  void the_overview_shows_where_the_time_of_a_step_goes() {
    open(PageId::kOverview);

    QTRY_COMPARE(scene_->text("step_time").replace(QChar::Nbsp, ' '),
                 QString("0.5 s \u00B7 3.85 PFLOP/s\nmatrix products 60 %, attention 16 %, elementwise 8 %, "
                         "communication 5 %, other 11 %"));
  }

  // Of a trainer of before, and of a device that does not measure.
  void what_is_not_known_of_a_step_is_not_made_up() {
    scene_->agent.say({{"step_seconds", nullptr}, {"flops_per_second", nullptr}});
    open(PageId::kOverview);
    QTRY_COMPARE(scene_->text("step_time"), QString("\u2013"));

    scene_->agent.say({{"step_seconds", {{"total", 0.5}, {"data", 0.05}}}});

    QTRY_COMPARE(scene_->text("step_time").replace(QChar::Nbsp, ' '), QString("0.5 s\nwaiting for data 10 %"));
  }

  void the_loss_is_seen_with_its_axis_before_the_page_is_scrolled() {
    open(PageId::kOverview);
    QTRY_COMPARE(scene_->text("rounds_accepted"), QString("42"));
    QWidget* page = scene_->window->view()->pageWidget();
    auto* plot = page->findChild<HistoryPlot*>();
    QTest::qWait(300);  // the facts beside it take their room

    QTRY_VERIFY(plot->mapTo(page, QPoint(0, plot->height())).y() < page->height());
    scene_->window->resize(1280, 1200);
    QTRY_VERIFY(plot->mapTo(page, QPoint(0, plot->height())).y() > page->height() - 60);
  }

  // Lines: all islands, validations by others; this island, that smoothed, its validations.
  void a_newcomers_overview_draws_the_run_from_its_first_round_on() {
    scene_->story.be_a_newcomer(33);
    open(PageId::kOverview);
    auto* plot = scene_->window->view()->pageWidget()->findChild<HistoryPlot*>();
    const double came = scene_->story.points("loss_nats").time.front();
    const auto drawn = [&](int line) { return plot->line(line).source(plot->from(), plot->to(), 1000); };

    QTRY_VERIFY(plot->from() <= scene_->story.points(kPastLossSeries).time.front());
    QTRY_COMPARE(drawn(1).size(), std::size_t{33});
    QTRY_VERIFY(!drawn(0).empty() && !drawn(2).empty() && !drawn(4).empty());
    QVERIFY(drawn(0).front().x < came - 3600 && drawn(0).back().x > came + 600);
    QVERIFY(drawn(2).front().x >= came - 60);
    QVERIFY(drawn(1).back().x < drawn(4).front().x);  // each state once
  }

  void the_past_is_shown_and_hidden_with_the_training_pages_lines() {
    scene_->story.be_a_newcomer(33);
    open(PageId::kTraining);
    auto* plot = scene_->find<HistoryPlot>("loss_plot");
    QTRY_VERIFY(plot->from() < 1000);

    for (const char* name : {"Show All islands", "Show Validation"}) {
      const auto boxes = scene_->window->view()->pageWidget()->findChildren<QCheckBox*>();
      const auto box = std::ranges::find(boxes, QString(name), &QCheckBox::accessibleName);
      QVERIFY2(box != boxes.end(), name);
      (*box)->setChecked(false);
    }

    for (const int line : {2, 3, 4}) QVERIFY(!plot->isLineShown(line));
    for (const int line : {0, 1}) QVERIFY(plot->isLineShown(line));
  }

  void a_figure_is_copied_with_its_name() {
    open(PageId::kOverview);
    QTRY_COMPARE(tile("loss")->value(), QString("2.717"));
    tile("loss")->setFocus();

    QTest::keySequence(tile("loss"), QKeySequence::Copy);

    QCOMPARE(QApplication::clipboard()->text(), tile("loss")->accessibleName());
  }

  void an_island_that_contributes_nothing_is_told_so() {
    scene_->agent.say({{"accepted_round", 31u}});
    open(PageId::kOverview);

    QTRY_COMPARE(scene_->text("accepted"), QString("in round 32\nnothing of later rounds was"));
  }

  void a_hub_that_does_not_answer_is_said_with_its_cause_until_it_does() {
    open(PageId::kOverview);
    QTRY_COMPARE(scene_->text("network"), QString("hub reachable"));
    const QString when = text::date_time(scene_->agent.time() + 1);

    scene_->agent.tell("hub.link", {{"up", false}, {"text", "no route"}, {"tries_for_seconds", 600.0}});

    QTRY_COMPARE(scene_->text("network"), QString("hub not reachable since %1: no route").arg(when));
    scene_->agent.tell("transfer", {{"what", "state"},
                                    {"status", "running"},
                                    {"done_bytes", 1'000'000'000u},
                                    {"total_bytes", 4'000'000'000u},
                                    {"bytes_per_second", 2e7},
                                    {"seconds_left", 150.0}});
    QTRY_VERIFY(
        scene_->text("network").endsWith("\nfetching the model's state: 1 GB of 4 GB, 160 Mbit/s, 2 min 30 s left"));
    scene_->agent.tell("hub.link", {{"up", true}});
    QTRY_VERIFY(scene_->text("network").startsWith("hub reachable since "));
  }

  void before_the_first_step_nothing_is_made_up() {
    scene_->story.be_empty();
    open(PageId::kOverview);

    QTRY_COMPARE(scene_->text("state"), QString("Waiting"));
    QTRY_COMPARE(scene_->text("accepted"), QString("none yet"));
    QCOMPARE(tile("loss")->value(), QString("\u2013"));
    QCOMPARE(tile("next_sync")->value(), QString("\u2013"));
  }

  void with_a_throttled_gpu_not_all_is_said_to_be_well() {
    open(PageId::kOverview);
    QTRY_COMPARE(scene_->find<QListWidget>("alerts")->item(0)->text(), QString("No alerts."));
  }

  void alerts_are_listed_newest_first() {
    scene_ = std::make_unique<GuiScene>(1);
    open(PageId::kOverview);
    auto* alerts = scene_->find<QListWidget>("alerts");
    QTRY_COMPARE(alerts->item(0)->text(), QString("Nothing is amiss."));

    scene_->agent.tell(
        "gpu.alert",
        {{"kind", "temperature"}, {"gpu", 3u}, {"celsius", 91.0}, {"cap_celsius", 85.0}, {"pauses", true}});

    QTRY_VERIFY(alerts->item(0)->text().contains("91"));
  }

  void what_pauses_it_is_said_with_what_is_amiss_besides() {
    open(PageId::kOverview);
    nlohmann::json agent = scene_->agent.state()["agent"];
    agent["followed"] = "pause";
    agent["warning"] = "the disk is full";
    agent["paused_by"] = {{{"rule", "rules.battery"},
                           {"why", "the machine runs on its battery"},
                           {"until", "1 min after it is plugged in"},
                           {"until_unix_seconds", nullptr}}};
    scene_->agent.say({{"state", "paused"}, {"agent", agent}});

    const auto advice = [&] { return text::advice(scene_->node()).value_or(text::Advice{}); };
    QTRY_COMPARE(advice().sentence, QString("Training is paused while the machine runs on its battery."));
    QCOMPARE(advice().details, QString("the machine runs on its battery, until 1 min after it is plugged in "
                                       "(rules.battery)\nthe disk is full"));
    auto* alerts = scene_->find<QListWidget>("alerts");
    const auto said = [&] {
      QStringList texts;
      for (int i = 0; i < alerts->count(); ++i) texts << alerts->item(i)->text();
      return texts.join('\n');
    };
    QTRY_VERIFY(said().contains("runs on its battery") && said().contains("the disk is full"));
  }

  // ---- Training

  void the_training_page_draws_loss_over_steps_tokens_or_time() {
    open(PageId::kTraining);
    auto* plot = scene_->find<HistoryPlot>("loss_plot");
    QTRY_VERIFY(plot->to() > 21'000);
    QCOMPARE(plot->axis(), SeriesAxis::kStep);

    scene_->find<QComboBox>("axis")->setCurrentIndex(2);

    QCOMPARE(plot->axis(), SeriesAxis::kTime);
    QTRY_VERIFY(plot->from() > 1.7e9);
  }

  void the_small_plots_show_the_same_range() {
    open(PageId::kTraining);
    auto* plot = scene_->find<HistoryPlot>("loss_plot");
    auto* rate = scene_->find<HistoryPlot>("learning_rate_plot");
    QTRY_VERIFY(plot->to() > 21'000);

    plot->setRange(5000, 6000);
    QCOMPARE(rate->from(), 5000.0);
    rate->setRange(7000, 8000);

    QCOMPARE(plot->from(), 7000.0);
    QCOMPARE(plot->to(), 8000.0);
  }

  void zooming_in_asks_for_finer_points() {
    open(PageId::kTraining);
    auto* plot = scene_->find<HistoryPlot>("loss_plot");
    QTRY_VERIFY(plot->to() > 21'000);
    const auto coarse = scene_->agent.count("metrics.query");

    plot->setRange(5000, 5100);

    QTRY_VERIFY(scene_->agent.count("metrics.query") > coarse);
    const Series& series = scene_->node().history().series("loss_nats", SeriesAxis::kStep);
    QTRY_VERIFY(series.nearest(5100) - series.nearest(5000) >= 90);
  }

  void a_line_can_be_switched_off() {
    open(PageId::kTraining);
    auto* plot = scene_->find<HistoryPlot>("loss_plot");
    QCheckBox* validation = nullptr;
    for (auto* box : scene_->window->view()->pageWidget()->findChildren<QCheckBox*>()) {
      if (box->text() == "Validation") validation = box;
    }
    QVERIFY(validation != nullptr);
    validation->click();

    for (int i = 0; i < plot->lineCount(); ++i) {
      QCOMPARE(plot->isLineShown(i), !plot->line(i).name.startsWith("Validation"));
    }
  }

  // ---- Sync

  void the_ring_is_described_in_words_with_its_slowest_edge() {
    open(PageId::kSync);
    scene_->story.begin_sync();
    scene_->story.progress_sync(0.36);

    auto* ring = scene_->find<RingView>("ring");
    QTRY_VERIFY(ring->accessibleDescription().contains("Reduce-scatter, 36 %"));
    QVERIFY(ring->accessibleDescription().contains("under the desk (this island) to uni-h100-a, 840 Mbit/s"));
    QVERIFY(ring->accessibleDescription().contains("garage to montreal-8xh100, 92.8 Mbit/s, the slowest edge"));
    QTRY_VERIFY(scene_->text("sentence").contains("slowest edge goes from garage"));
  }

  void the_last_round_is_split_into_its_phases() {
    open(PageId::kSync);
    auto* phases = scene_->find<PhaseBar>("phases");
    QTRY_VERIFY2(phases->accessibleDescription().contains("Reduce-scatter"),
                 qPrintable(phases->accessibleDescription()));
    QVERIFY(scene_->text("last_sync").endsWith(" s"));
    QTRY_COMPARE(scene_->text("use"), QString("87 %"));
  }

  // Of one that is under way the wait alone is known: it would be shown as all of it.
  void while_the_ring_runs_the_phases_are_those_of_the_last_synchronisation() {
    open(PageId::kSync);
    auto* phases = scene_->find<PhaseBar>("phases");
    QTRY_VERIFY(phases->accessibleDescription().contains("All-gather"));

    scene_->story.begin_sync();
    scene_->story.progress_sync(0.36);

    QTRY_VERIFY(scene_->node().sync().active() && !scene_->node().sync().phases().empty());
    QTest::qWait(300);
    QVERIFY2(phases->accessibleDescription().contains("All-gather"), qPrintable(phases->accessibleDescription()));
    QVERIFY(!says("This synchronisation"));
    QVERIFY(says("Last synchronisation"));
    for (const char* part : {"connect", "quantise", "reduce_scatter", "all_gather"}) {
      scene_->agent.tell("sync.phase",
                         {{"phase", part}, {"round", 42u}, {"attempt", 1u}, {"seconds", 9.0}, {"bytes", 0u}});
    }
    QTRY_VERIFY(says("This synchronisation"));
  }

  void the_islands_are_listed_and_sorted() {
    open(PageId::kSync);
    auto* table = scene_->find<QTableView>("islands");
    QTRY_COMPARE(table->model()->rowCount(), 7);

    table->sortByColumn(IslandsModel::kRtt, Qt::DescendingOrder);

    QCOMPARE(table->model()->index(0, IslandsModel::kName).data().toString(), QString("tokyo-a100"));
  }

  void without_a_ring_it_says_when_there_will_be_one() {
    scene_->story.be_empty();
    open(PageId::kSync);

    QTRY_COMPARE(scene_->text("last_sync"), QString("\u2013"));
    QVERIFY(scene_->find<RingView>("ring")->accessibleDescription().startsWith("No ring yet"));
  }

  void chunks_travel_as_the_schedule_says() {
    // Rank r sends chunk r first, and in each step the chunk that it received in the one before.
    for (std::size_t rank = 0; rank < 5; ++rank) QCOMPARE(travelling_chunk(rank, 0, 5), rank);
    for (std::uint32_t step = 1; step < 8; ++step) {
      for (std::size_t rank = 0; rank < 5; ++rank) {
        QCOMPARE(travelling_chunk(rank, step, 5), travelling_chunk((rank + 4) % 5, step - 1, 5));
      }
    }
    QCOMPARE(travelling_chunk(2, 8, 5), std::size_t{2});  // the next bucket
  }

  void of_rates_that_would_overlap_the_foremost_are_drawn() {
    const QRectF middle(40, 40, 20, 20);
    const std::vector<QRectF> boxes = {{0, 0, 30, 10},    // free
                                       {20, 5, 30, 10},   // over the first
                                       {45, 5, 30, 10},   // over the second only, which is not drawn
                                       {55, 55, 30, 10},  // over the middle
                                       {0, 90, 30, 10}};

    QCOMPARE(apart(boxes, middle), (std::vector<bool>{true, false, true, false, true}));
  }

  // ---- GPUs

  void each_gpu_has_its_panel() {
    open(PageId::kGpus);
    QTRY_COMPARE(panels().size(), 8);
    QVERIFY(panels().at(0)->accessibleName().contains("H100"));
    QVERIFY(panels().at(0)->accessibleDescription().contains("Memory: 71.2 GB of 80 GB"));
    QVERIFY2(panels().at(5)->accessibleName().endsWith("throttled"), qPrintable(panels().at(5)->accessibleName()));
  }

  void many_gpus_are_drawn_as_their_mean_with_a_band() {
    open(PageId::kGpus);
    QTRY_COMPARE(plots().size(), 4);

    for (const GpuPlot* plot : plots()) {
      QCOMPARE(plot->lineCount(), 2);
      QVERIFY(plot->line(0).look.band && plot->isLineShown(0) && !plot->isLineShown(1));
    }
    QTRY_VERIFY(is_a_band(*plots().at(1)));  // each GPU's history arrives on its own
  }

  void of_many_gpus_one_can_be_chosen_and_left_again() {
    open(PageId::kGpus);
    QTRY_COMPARE(panels().size(), 8);
    GpuPanel* panel = panels().at(5);

    QTest::mouseClick(panel, Qt::LeftButton);
    QVERIFY(panel->accessibleName().endsWith("chosen"));
    for (const GpuPlot* plot : plots()) QVERIFY(plot->isLineShown(1));
    panels().at(2)->setFocus();
    QTest::keyClick(panels().at(2), Qt::Key_Space);
    QVERIFY(panels().at(2)->accessibleName().endsWith("chosen") && !panel->accessibleName().endsWith("chosen"));
    QTest::keyClick(panels().at(2), Qt::Key_Space);

    for (const GpuPlot* plot : plots()) QVERIFY(!plot->isLineShown(1));
  }

  void a_few_gpus_have_a_line_each() {
    scene_ = std::make_unique<GuiScene>(3);
    open(PageId::kGpus);
    QTRY_COMPARE(plots().size(), 4);

    for (const GpuPlot* plot : plots()) QCOMPARE(plot->lineCount(), 3);
    QTest::mouseClick(panels().at(1), Qt::LeftButton);
    QVERIFY(!panels().at(1)->accessibleName().endsWith("chosen"));
  }

  void gpus_are_called_by_their_index() {
    scene_ = std::make_unique<GuiScene>(2);
    nlohmann::json gpus = scene_->agent.state()["gpus"];
    gpus[0]["index"] = 4u;
    gpus[1]["index"] = 6u;
    scene_->agent.say({{"gpus", gpus}});
    open(PageId::kGpus);
    QTRY_COMPARE(panels().size(), 2);

    QVERIFY(panels().at(1)->accessibleName().startsWith("GPU 6"));
    QCOMPARE(plots().at(0)->line(1).name, QString("GPU 6"));
    QTRY_VERIFY(plots().at(0)->message().isEmpty());  // its history is asked for by that, too
  }

  void one_of_several_gpus_is_paused_and_resumed() {
    scene_->agent.answer("gpu.pause", {{"gpus", "0-4,6-7"}, {"kept", true}});
    scene_->agent.fail("gpu.resume", ErrorCode::kInvalidArgument, "GPU 5 is not paused");
    open(PageId::kGpus);
    QTRY_COMPARE(panels().size(), 8);
    auto* button = panels().at(5)->findChild<QToolButton*>("pause_gpu");
    QTRY_VERIFY(button->isVisible());
    QCOMPARE(button->accessibleName(), QString("Pause GPU 5"));

    QTest::mouseClick(button, Qt::LeftButton);
    QTRY_COMPARE(scene_->agent.last_params("gpu.pause").dump(), std::string(R"({"gpu":5})"));
    nlohmann::json agent = scene_->agent.state()["agent"];
    agent["paused_gpus"] = {{{"gpu", 5u}, {"until_unix_seconds", nullptr}}};
    scene_->agent.say({{"agent", agent}});

    QTRY_COMPARE(button->accessibleName(), QString("Resume GPU 5"));
    QVERIFY2(panels().at(5)->accessibleName().endsWith("paused"), qPrintable(panels().at(5)->accessibleName()));
    QTest::mouseClick(button, Qt::LeftButton);
    QTRY_VERIFY(scene_->find<Notice>("gpus_notice")->isVisible());
  }

  void the_only_gpu_is_not_paused_alone() {
    scene_ = std::make_unique<GuiScene>(1);
    open(PageId::kGpus);
    QTRY_COMPARE(panels().size(), 1);

    QVERIFY(!panels().at(0)->findChild<QToolButton*>("pause_gpu")->isVisible());
  }

  void errors_of_memory_weigh_more_than_heat() {
    GpuSample sample;
    QCOMPARE(judge_gpu(sample).tone, Tone::kGood);
    sample.temperature_celsius = 78;
    QCOMPARE(judge_gpu(sample).tone, Tone::kWarning);
    sample.ecc_errors = 2;
    QCOMPARE(judge_gpu(sample).tone, Tone::kBad);
    QCOMPARE(judge_gpu(sample).word, QString("memory errors"));
  }

  void a_machine_without_gpus_is_told_so_plainly() {
    scene_ = std::make_unique<GuiScene>(0);
    open(PageId::kGpus);
    auto* none = scene_->window->view()->pageWidget()->findChild<EmptyState*>();
    QTRY_VERIFY(none->isVisible());
    QCOMPARE(none->title(), QString("No GPU in use here"));
    scene_->click("empty_action");

    QCOMPARE(scene_->window->view()->page(), PageId::kCheck);
  }

  // ---- Checkpoints

  void checkpoints_are_verified_on_demand_and_the_outcome_is_said() {
    scene_->commands.answer({"checkpoints", "verify"}, {.exit_code = 0, .out = R"({"checkpoints": []})"});
    open(PageId::kCheckpoints);
    QTRY_COMPARE(scene_->find<QTableView>("checkpoints")->model()->rowCount(), 2);

    scene_->click("verify");

    QTRY_VERIFY(!scene_->commands.asked().empty());
    QTRY_VERIFY(!scene_->node().checkpoints().busy());
    QTRY_VERIFY(!scene_->text("sentence").isEmpty());
  }

  void a_full_disk_is_said_when_an_export_fails() {
    scene_->commands.answer({"export"}, {.exit_code = 1, .err = "atoll: cannot write /m: No space left on device\n"});
    open(PageId::kCheckpoints);

    scene_->node().checkpoints().exportTo("/mnt/model");

    QTRY_COMPARE(scene_->text("sentence"), QString("The model was not exported."));
    QVERIFY(scene_->text("advice").startsWith("The disk is full."));
    QCOMPARE(scene_->text("details"), QString("cannot write /m: No space left on device"));
  }

  void the_chosen_checkpoints_hash_is_copied() {
    open(PageId::kCheckpoints);
    auto* table = scene_->find<QTableView>("checkpoints");
    QTRY_COMPARE(table->model()->rowCount(), 2);
    table->selectRow(0);
    QTRY_VERIFY(scene_->find<QPushButton>("copy_hash")->isEnabled());

    scene_->click("copy_hash");

    QVERIFY(QApplication::clipboard()->text().startsWith("9f86d081"));
  }

  void without_a_checkpoint_it_says_when_there_will_be_one() {
    scene_->story.be_empty();
    open(PageId::kCheckpoints);
    QTRY_VERIFY(scene_->window->view()->pageWidget()->findChild<EmptyState*>()->isVisible());
    QVERIFY(!scene_->find<QPushButton>("verify")->isEnabled());
  }

 private:
  void open(PageId page) {
    scene_->open();
    QTRY_VERIFY(scene_->node().state().has_value());
    scene_->window->showPage(page);
    QTRY_VERIFY(scene_->window->view()->pageWidget() != nullptr);
  }
  bool says(const QString& title) {
    return std::ranges::any_of(scene_->window->view()->pageWidget()->findChildren<QLabel*>(),
                               [&](const QLabel* label) { return label->isVisible() && label->text() == title; });
  }
  StatTile* tile(const char* name) { return scene_->find<StatTile>(name); }
  QList<GpuPanel*> panels() { return scene_->window->view()->pageWidget()->findChildren<GpuPanel*>(); }

  static bool is_a_band(const GpuPlot& plot) {
    const auto columns = plot.line(0).source(plot.from(), plot.to(), 100);
    return columns.size() > 50 && columns.front().low < columns.front().mean &&
           columns.front().mean < columns.front().high;
  }

  QList<GpuPlot*> plots() { return scene_->window->view()->pageWidget()->findChildren<GpuPlot*>(); }

  std::unique_ptr<GuiScene> scene_;
};

QTEST_MAIN(DashboardTest)
#include "dashboard_test.moc"
