// A run of one's own: made, served, invites, islands; over a hub in memory.
#include "app/gui/organise/organise_window.h"

#include <QClipboard>
#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QMessageBox>
#include <QPushButton>
#include <QSpinBox>
#include <QTableView>
#include <QTemporaryDir>
#include <QtTest>

#include "app/cli/run_preset.h"
#include "app/core/hub_model.h"
#include "app/gui/demo/loss_sketch.h"
#include "app/gui/look/colours.h"
#include "app/gui/organise/create_run_page.h"
#include "app/gui/organise/hub_page.h"
#include "app/gui/organise/invite_dialog.h"
#include "app/gui/organise/preset_facts.h"
#include "app/gui/organise/qr_code.h"
#include "app/gui/organise/task_sketch.h"
#include "app/gui/parts/notice.h"
#include "app/gui/parts/stat_tile.h"
#include "net/check/figures.h"
#include "net/check/judge_rows.h"
#include "net/check/run_needs.h"
#include "net/data/dataset.h"
#include "net/data/token_shard.h"
#include "tests/app/core/fake_agent.h"
#include "tests/app/gui/reach.h"
#include "tests/fakes/hub_states.h"
#include "tests/fakes/patience.h"

using namespace atl;
using namespace atl::test;

namespace {

HubState serving_state() {
  HubState state = training_run(/*islands=*/1, /*rounds=*/12);
  state.rounds.back().mean_loss_nats = 2.914;
  state.islands.front().id = "isl-aaaa";
  state.islands.front().phase = IslandPhase::kSyncing;
  return state;
}

constexpr const char* kInvite = "atoll1.AAAABBBBCCCCDDDD.0123abcd";

}  // namespace

class OrganiseTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() {
    QLocale::setDefault(QLocale::c());
    qputenv("ATOLL_PROGRAM", "/bin/true");  // nothing is started by a test
  }
  void init() {
    hub_agent_ = std::make_unique<FakeAgent>();
    hub_agent_->answer("state.get", serving_state().to_json());
    commands_ = std::make_unique<FakeCommands>();
    directory_ = std::make_unique<QTemporaryDir>();
    commands_->answer({"hub", "islands"}, {.out = R"({"serving":true,"islands":[
                         {"island":"isl-aaaa","name":"basement","state":"training","enrolled_at":1763700000},
                         {"island":"isl-bbbb","name":"<b>attic</b>","state":"removed","enrolled_at":1763700000}]})"});
    commands_->answer({"hub", "invite"},
                      {.out = QByteArray(R"({"id":"inv-7","uses":3,"file":null,"hub_addresses":["h:1"],
                         "expires_unix_seconds":1999999999,"invite":")") +
                              kInvite + "\"}"});
  }
  void cleanup() {
    window_.reset();
    hub_.reset();
  }

  void every_preset_says_what_it_asks_of_islands();
  void a_presets_memory_is_the_node_checks();
  void a_run_is_made_once_nothing_is_missing();
  void what_is_missing_is_said();
  void an_address_that_no_other_machine_can_dial_is_said();
  void a_run_that_could_not_be_made_says_why();
  void a_hub_that_serves_shows_who_takes_part();
  void the_loss_is_drawn_from_the_first_round_on();
  void the_round_under_way_is_not_called_safe();
  void what_tasks_came_to_is_drawn_over_rounds();
  void a_run_without_islands_asks_for_an_invite();
  void a_hub_that_stands_still_is_said_so();
  void a_run_that_cannot_go_on_says_what_is_missing_and_goes_back_when_asked();
  void an_island_is_removed_after_a_question();
  void serving_stops_after_a_question();
  void an_invite_is_hidden_until_it_is_shown();
  void an_invite_is_copied_as_text_and_as_link();
  void an_invite_that_could_not_be_made_says_why();
  void a_qr_code_holds_the_longest_invite();
  void its_windows_can_be_used_by_everybody();

 private:
  void open(bool made) {
    if (made) {
      QFile file(directory_->filePath("run.json"));
      QVERIFY(file.open(QIODevice::WriteOnly));
    } else {
      hub_agent_->refuse({ErrorCode::kNotRunning, "no hub"});
    }
    hub_ = std::make_unique<HubModel>(HubHome{directory_->path().toStdString()}, hub_agent_->open(), commands_->run());
    window_ = std::make_unique<OrganiseWindow>(*hub_);
    hub_->start();
    window_->show();
    QVERIFY(QTest::qWaitForWindowExposed(window_.get()));
  }
  template <class T>
  T* find(const char* name) {
    return window_->findChild<T*>(name);
  }
  InviteDialog* open_invite() {
    find<QPushButton>("invite")->click();
    return window_->findChild<InviteDialog*>();
  }
  bool was_asked(const QStringList& beginning) const {
    return std::ranges::any_of(commands_->asked(), [&](const CommandRequest& request) {
      return request.arguments.mid(0, beginning.size()) == beginning;
    });
  }

  std::unique_ptr<FakeAgent> hub_agent_;
  std::unique_ptr<FakeCommands> commands_;
  std::unique_ptr<QTemporaryDir> directory_;
  std::unique_ptr<HubModel> hub_;
  std::unique_ptr<OrganiseWindow> window_;
};

void OrganiseTest::every_preset_says_what_it_asks_of_islands() {
  QVERIFY(run_preset_names().size() >= 4);
  for (const std::string& name : run_preset_names()) {
    const auto facts = preset_facts(name);
    QVERIFY2(facts.ok(), facts.ok() ? "" : facts.error().message.c_str());
    QVERIFY(facts->parameters > 0 && facts->payload_bytes > 0 && facts->inner_steps > 0 && facts->tokens_per_step > 0);
  }
  QVERIFY(preset_facts("10b")->parameters > 9'000'000'000u);
}

// What the node check holds against a machine's memory where there is enough of it, and what `hub init` says at least.
void OrganiseTest::a_presets_memory_is_the_node_checks() {
  for (const std::string& name : run_preset_names()) {
    auto run = make_run(name, name, {});
    QVERIFY(run.ok());
    ShardEntry shard{.file = "shard", .tokens = 1, .bytes = kTokenShardHeaderBytes + 2, .sha256 = std::string(64, '0')};
    DatasetManifest manifest;
    manifest.train = manifest.validation = {shard};
    run->dataset_json = manifest.to_json();
    NodeFacts facts;
    facts.run = *needs_of(*run);
    facts.host.ram_bytes = std::uint64_t{1} << 50;
    facts.host.ram_available_bytes = facts.host.ram_bytes;

    const CheckRow row = judge_ram(facts, CheckPolicy());

    const auto shown = preset_facts(name);
    const QString held =
        QString::fromStdString(figures::bytes(CheckPolicy().thresholds.ram.pass * shown->usual_memory_bytes));
    QVERIFY2(QString::fromStdString(row.text).contains(">= " + held),
             qPrintable(QString::fromStdString(row.text) + " / " + held));
    QCOMPARE(shown->memory_bytes, static_cast<double>(facts.run->micro_batches.front().bytes));
    QVERIFY(shown->usual_memory_bytes >= shown->memory_bytes);
  }
}

void OrganiseTest::a_run_is_made_once_nothing_is_missing() {
  commands_->answer({"data", "prepare"}, {.exit_code = 0});
  commands_->answer({"hub", "init"}, {.exit_code = 0});
  open(/*made=*/false);
  QVERIFY(!find<QPushButton>("create")->isEnabled());
  find<QLineEdit>("run_name")->setText("first");
  find<QLineEdit>("operator")->setText("Ada's lab");
  find<QLineEdit>("text_directory")->setText(directory_->path());
  find<QLineEdit>("advertise")->setText("hub.example.org");
  find<QSpinBox>("min_islands")->setValue(5);
  QVERIFY(find<QPushButton>("create")->isEnabled());

  find<QPushButton>("create")->click();

  QVERIFY(!find<QPushButton>("create")->isEnabled());
  QTRY_VERIFY(was_asked({"hub", "init"}));
  QVERIFY(was_asked({"data", "prepare"}));
  const QStringList init = commands_->asked().back().arguments;
  QVERIFY2(init.contains("--islands=5") && init.contains("--name=first") && init.contains("--operator=Ada's lab"),
           qPrintable(init.join(' ')));
  // What it is served with is kept: a host alone has the port that is listened on.
  QFile kept(directory_->filePath("app-serve.json"));
  QTRY_VERIFY(kept.exists());
  QVERIFY(kept.open(QIODevice::ReadOnly) && kept.readAll().contains("hub.example.org:47000"));
}

void OrganiseTest::what_is_missing_is_said() {
  open(/*made=*/false);
  auto* page = window_->findChild<CreateRunPage*>();

  find<QLineEdit>("run_name")->setText("first");
  QCOMPARE(find<Notice>("create_notice")->sentence(), QString("Choose the directory of the text."));
  find<QLineEdit>("text_directory")->setText("/nowhere/at/all");
  QVERIFY(page->defect().contains("/nowhere/at/all"));
  find<QLineEdit>("text_directory")->setText(directory_->path());
  find<QLineEdit>("listen")->setText("everywhere");
  QCOMPARE(page->defect(), QString("Write where the hub listens as HOST:PORT."));
  find<QLineEdit>("listen")->setText("0.0.0.0:47000");
  find<QLineEdit>("advertise")->setText("no body");
  QCOMPARE(page->defect(), QString("Write where the hub is reached as HOST or HOST:PORT."));
  for (const char* good : {"hub.example.org:47000", "hub.example.org", "203.0.113.7", ""}) {
    find<QLineEdit>("advertise")->setText(good);
    QCOMPARE(page->defect(), QString());
  }
}

void OrganiseTest::an_address_that_no_other_machine_can_dial_is_said() {
  open(/*made=*/false);
  find<QLineEdit>("run_name")->setText("first");
  find<QLineEdit>("text_directory")->setText(directory_->path());
  find<QLineEdit>("listen")->setText("0.0.0.0:47000");
  auto* notice = find<Notice>("create_notice");

  for (const char* host : {"127.0.0.1", "localhost:47000", "[::1]:47000"}) {
    find<QLineEdit>("advertise")->setText(host);
    QVERIFY2(notice->sentence().startsWith("Only this machine can reach "), host);
    QVERIFY(find<QPushButton>("create")->isEnabled());  // it may be meant
  }
  find<QLineEdit>("advertise")->setText("hub.example.org");
  QCOMPARE(notice->sentence(), QString());
  find<QLineEdit>("advertise")->clear();
  find<QLineEdit>("listen")->setText("127.0.0.1:47000");
  QCOMPARE(notice->sentence(), QString("Only this machine can reach 127.0.0.1."));
}

void OrganiseTest::a_run_that_could_not_be_made_says_why() {
  commands_->answer({"data", "prepare"}, {.exit_code = 1, .err = "atoll: there is no text in it\n"});
  open(/*made=*/false);
  find<QLineEdit>("run_name")->setText("first");
  find<QLineEdit>("text_directory")->setText(directory_->path());

  find<QPushButton>("create")->click();

  QTRY_COMPARE(find<Notice>("create_notice")->sentence(), QString("The run could not be made."));
  QCOMPARE(find<Notice>("create_notice")->advice(), QString("there is no text in it"));
  QVERIFY(find<QPushButton>("create")->isEnabled());
}

void OrganiseTest::a_hub_that_serves_shows_who_takes_part() {
  open(/*made=*/true);

  QTRY_COMPARE(find<QLabel>("reached")->text(), QString("hub.example.org:47000"));
  const QAbstractItemModel* islands = find<QTableView>("hub_islands")->model();
  QTRY_COMPARE(islands->rowCount(), 2);
  QCOMPARE(islands->index(0, 0).data().toString(), QString("basement"));
  QCOMPARE(islands->index(0, 1).data().toString(), QString("Synchronising"));
  QCOMPARE(islands->index(0, 2).data().toString(), QString("371/500"));
  QCOMPARE(islands->index(1, 0).data().toString(), QString("<b>attic</b>"));
  QCOMPARE(islands->index(1, 1).data().toString(), QString("Removed"));
  QCOMPARE(find<StatTile>("present")->value(), QString("1"));
  QCOMPARE(find<StatTile>("loss")->accessibleName(), QString("Loss: 2.914 nats per token"));
  // The table is as high as its rows: the rest is the loss's.
  QTRY_VERIFY(find<QTableView>("hub_islands")->height() < 4 * find<QTableView>("hub_islands")->rowHeight(0));
  QVERIFY(window_->windowTitle().contains("gcide-demo"));
  QVERIFY(!find<Notice>("hub_notice")->says());
}

void OrganiseTest::the_loss_is_drawn_from_the_first_round_on() {
  HubState state = serving_state();
  state.outer_step = 512;
  state.past.clear();
  for (std::uint32_t i = 0; i < HubState::kMaxPast; ++i) state.past.push_back({2 * i, 2, 240'000, 19, 6 - i * 0.01});
  hub_agent_->answer("state.get", state.to_json());
  open(/*made=*/true);

  QTRY_COMPARE(window_->findChild<LossSketch*>()->accessibleName(),
               QString("Loss over rounds: from 6.00 in round 2 to 3.45 in round 512"));
}

// Twelve rounds are committed, and the thirteenth is under way.
void OrganiseTest::the_round_under_way_is_not_called_safe() {
  HubState state = serving_state();
  state.safe_outer_step = state.outer_step;
  hub_agent_->answer("state.get", state.to_json());
  open(/*made=*/true);

  QTRY_COMPARE(find<StatTile>("round")->value(), QString("13"));
  QCOMPARE(find<StatTile>("present")->accessibleName(), QString("Islands here: 1, safe on disks up to round 12"));
}

namespace {

// Pixels of about this colour.
int count_pixels(const QImage& image, const QColor& colour) {
  int found = 0;
  for (int y = 0; y < image.height(); ++y) {
    for (int x = 0; x < image.width(); ++x) {
      const QColor pixel = image.pixelColor(x, y);
      const int apart = std::abs(pixel.red() - colour.red()) + std::abs(pixel.green() - colour.green()) +
                        std::abs(pixel.blue() - colour.blue());
      if (apart < 24) ++found;
    }
  }
  return found;
}

}  // namespace

void OrganiseTest::what_tasks_came_to_is_drawn_over_rounds() {
  HubState state = serving_state();
  state.evaluations = {{"hellaswag", "acc", {{0, 0.25}, {10, 0.375}}, {{"acc", 0.375}}},
                       {"<i>arc</i>", "acc", {{0, 0.2}, {10, 0.5}}, {{"acc", 0.5}}},
                       {"wikitext", "bits_per_byte", {{0, 8}, {10, 2}}, {{"bits_per_byte", 2}}}};
  hub_agent_->answer("state.get", state.to_json());
  open(/*made=*/true);
  auto* tasks = find<TaskSketch>("tasks");
  QTRY_COMPARE(tasks->accessibleName(),
               QString("Accuracy on tasks: hellaswag 38 % after round 10, <i>arc</i> 50 % after round 10"));
  QVERIFY(tasks->isVisible());
  const QImage drawn = tasks->grab().toImage();
  const Colours& colours = colours_of(tasks->palette());
  for (const std::size_t task : {0, 1}) QVERIFY(count_pixels(drawn, colours.series[task]) > 100);

  hub_agent_->answer("state.get", serving_state().to_json());  // of a run that asks nothing
  QTRY_VERIFY_WITH_TIMEOUT(!tasks->isVisible(), 60'000);
}

void OrganiseTest::a_run_without_islands_asks_for_an_invite() {
  hub_agent_->answer("state.get", young_run().to_json());
  commands_->answer({"hub", "islands"}, {.out = R"({"serving":true,"islands":[]})"});
  open(/*made=*/true);
  QTRY_COMPARE(find<StatTile>("round")->accessibleName(), QString("Round: 0, waits for islands"));
  QVERIFY(!find<QTableView>("hub_islands")->isVisible());
  QCOMPARE(unnamed_controls(*window_), QStringList());
  QCOMPARE(unreached_controls(*window_), QStringList());
  QCOMPARE(shared_mnemonics(*window_).join("; "), QString());

  find<QPushButton>("empty_action")->click();

  QVERIFY(window_->findChild<InviteDialog*>() != nullptr);
}

void OrganiseTest::a_hub_that_stands_still_is_said_so() {
  hub_agent_->refuse({ErrorCode::kNotRunning, "no hub"});

  open(/*made=*/true);

  QTRY_COMPARE(find<Notice>("hub_notice")->kind(), Notice::Kind::kWarning);
  QCOMPARE(find<QPushButton>("serve")->accessibleName(), QString("Start serving"));
}

void OrganiseTest::a_run_that_cannot_go_on_says_what_is_missing_and_goes_back_when_asked() {
  HubState state = serving_state();
  state.phase = HubPhase::kStandstill;
  state.standstill = HubState::Standstill{"lost", "no island holds outer step 12", 9};
  hub_agent_->answer("state.get", state.to_json());
  open(/*made=*/true);
  auto* notice = find<Notice>("hub_notice");
  QTRY_COMPARE(notice->details(), QString("no island holds outer step 12"));
  QCOMPARE(notice->kind(), Notice::Kind::kError);
  hub_agent_->answer("run.rollback", nlohmann::json{{"outer_step", 9}});

  find<QPushButton>("go_back")->click();
  QTRY_VERIFY(window_->findChild<QMessageBox*>("question"));
  QCOMPARE(hub_agent_->count("run.rollback"), std::size_t{0});
  find<QPushButton>("yes")->click();

  QTRY_COMPARE(hub_agent_->count("run.rollback"), std::size_t{1});
  QVERIFY(hub_agent_->last_params("run.rollback") == nlohmann::json({{"to", 9}, {"force", false}}));
  hub_agent_->answer("state.get", serving_state().to_json());
  QTRY_VERIFY_WITH_TIMEOUT(!find<QPushButton>("go_back")->isVisible(), 60'000);
}

void OrganiseTest::an_island_is_removed_after_a_question() {
  commands_->answer({"hub", "remove"}, {.exit_code = 0});
  open(/*made=*/true);
  auto* table = find<QTableView>("hub_islands");
  QTRY_COMPARE(table->model()->rowCount(), 2);
  table->selectRow(1);
  QVERIFY(!find<QPushButton>("remove")->isEnabled());  // it is already
  table->selectRow(0);

  find<QPushButton>("remove")->click();
  auto* question = window_->findChild<QMessageBox*>("question");
  QVERIFY(question != nullptr && question->text().contains("basement"));
  QVERIFY(!was_asked({"hub", "remove"}));
  question->findChild<QPushButton*>("yes")->click();

  QTRY_VERIFY(was_asked({"hub", "remove"}));
  const auto removed = std::ranges::find_if(
      commands_->asked(), [](const CommandRequest& request) { return request.arguments.value(1) == "remove"; });
  QVERIFY(removed->arguments.contains("isl-aaaa"));
}

void OrganiseTest::serving_stops_after_a_question() {
  hub_agent_->answer("stop", nlohmann::json{{"stopping", true}});
  open(/*made=*/true);
  QTRY_VERIFY(hub_->serving());

  find<QPushButton>("serve")->click();
  QCOMPARE(hub_agent_->count("stop"), std::size_t{0});
  window_->findChild<QMessageBox*>("question")->findChild<QPushButton*>("yes")->click();

  QTRY_COMPARE(hub_agent_->count("stop"), std::size_t{1});
}

void OrganiseTest::an_invite_is_hidden_until_it_is_shown() {
  open(/*made=*/true);
  InviteDialog* dialog = open_invite();
  QVERIFY(dialog != nullptr);
  dialog->findChild<QSpinBox*>("uses")->setValue(3);
  dialog->findChild<QComboBox*>("expires")->setCurrentIndex(2);

  dialog->findChild<QPushButton*>("make")->click();

  auto* text = dialog->findChild<QLineEdit*>("invite_text");
  auto* code = dialog->findChild<QrCode*>();
  QTRY_COMPARE(text->text(), QString(kInvite));
  QCOMPARE(text->echoMode(), QLineEdit::Password);
  QVERIFY(!code->isVisible());
  const QStringList arguments = commands_->asked().back().arguments;
  QVERIFY2(arguments.contains("--uses=3") && arguments.contains("--expires=7d"), qPrintable(arguments.join(' ')));
  dialog->findChild<QPushButton*>("show")->click();
  QCOMPARE(text->echoMode(), QLineEdit::Normal);
  QVERIFY(code->isVisible());
  dialog->findChild<QPushButton*>("show")->click();
  QCOMPARE(text->echoMode(), QLineEdit::Password);
}

void OrganiseTest::an_invite_is_copied_as_text_and_as_link() {
  open(/*made=*/true);
  InviteDialog* dialog = open_invite();
  dialog->findChild<QPushButton*>("make")->click();
  QTRY_VERIFY(dialog->findChild<QPushButton*>("copy_invite")->isVisible());

  dialog->findChild<QPushButton*>("copy_invite")->click();
  QCOMPARE(QGuiApplication::clipboard()->text(), QString(kInvite));
  dialog->findChild<QPushButton*>("copy_link")->click();

  QCOMPARE(QGuiApplication::clipboard()->text(), QString("atoll:join?i=") + kInvite);
}

void OrganiseTest::an_invite_that_could_not_be_made_says_why() {
  commands_->answer({"hub", "invite"}, {.exit_code = 1, .err = "atoll: the disk is full\n"});
  open(/*made=*/true);
  InviteDialog* dialog = open_invite();

  dialog->findChild<QPushButton*>("make")->click();

  auto* notice = dialog->findChild<Notice*>("invite_notice");
  QTRY_COMPARE(notice->kind(), Notice::Kind::kError);
  QCOMPARE(notice->advice(), QString("the disk is full"));
}

void OrganiseTest::a_qr_code_holds_the_longest_invite() {
  const auto usual = qr_modules(QByteArray("atoll:join?i=") + QByteArray(300, 'A'));
  QVERIFY(usual.ok());
  QCOMPARE(usual->dark.size(), static_cast<std::size_t>(usual->width) * static_cast<std::size_t>(usual->width));
  QVERIFY(usual->dark.front());  // a finder pattern stands in the corner

  QVERIFY(qr_modules(QByteArray(2900, 'A')).ok());
  QCOMPARE(qr_modules(QByteArray(4000, 'A')).error().code, ErrorCode::kInvalidArgument);
}

void OrganiseTest::its_windows_can_be_used_by_everybody() {
  open(/*made=*/false);
  QCOMPARE(unnamed_controls(*window_), QStringList());
  QCOMPARE(unreached_controls(*window_), QStringList());
  QCOMPARE(shared_mnemonics(*window_).join("; "), QString());
  window_.reset();
  hub_agent_->welcome();
  open(/*made=*/true);
  QTRY_COMPARE(find<QTableView>("hub_islands")->model()->rowCount(), 2);
  QCOMPARE(unnamed_controls(*window_), QStringList());
  QCOMPARE(unreached_controls(*window_), QStringList());
  QCOMPARE(shared_mnemonics(*window_).join("; "), QString());
  QCOMPARE(cut_texts(*window_), QStringList());
  InviteDialog* dialog = open_invite();
  dialog->findChild<QPushButton*>("make")->click();
  QTRY_VERIFY(dialog->findChild<QPushButton*>("show")->isVisible());
  QCOMPARE(unnamed_controls(*dialog), QStringList());
  QCOMPARE(unreached_controls(*dialog), QStringList());
  QCOMPARE(shared_mnemonics(*dialog).join("; "), QString());
  QCOMPARE(cut_texts(*dialog), QStringList());
}

QTEST_MAIN(OrganiseTest)
#include "organise_test.moc"
