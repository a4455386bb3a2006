// atoll-gui-wizard-screenshots OUTDIR [FILTER [LANGUAGE]]: draws the wizard's pages, organising a run, the demo and
// dialogs, light and dark, also at twice the pixels (@2x), for people to look at. FILTER: only files whose name
// contains it.
#include <functional>

#include <QAbstractButton>
#include <QApplication>
#include <QCheckBox>
#include <QDir>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QSpinBox>
#include <QTableView>
#include <QTimer>

#include "app/core/hub_model.h"
#include "app/gui/add_node_dialog.h"
#include "app/gui/demo_page.h"
#include "app/gui/diagnostics_dialog.h"
#include "app/gui/join_wizard/join_wizard.h"
#include "app/gui/look/theme.h"
#include "app/gui/organise/invite_dialog.h"
#include "app/gui/organise/organise_window.h"
#include "app/gui/translation.h"
#include "net/base/sha256.h"
#include "net/wire/invite.h"
#include "tests/app/gui/gui_node.h"
#include "tests/app/gui/pictures.h"
#include "tests/fakes/hub_states.h"

using namespace atl;
using namespace atl::test;

namespace {

constexpr int kSettle = 350;  // milliseconds: answers come, layouts follow

const Pictures* pictures = nullptr;
bool dark = false;

void take(const char* name, QWidget& widget) {
  QTest::qWait(kSettle);
  if (pictures->wanted(name, dark)) pictures->save(widget, name, dark);
}

void take_at(const char* name, QWidget& widget, const QSize& size) {
  const QSize own = widget.size();
  widget.resize(size);
  take(name, widget);
  widget.resize(own);
}

Invite plain_invite(std::chrono::hours left = std::chrono::hours(24)) {
  Invite invite;
  invite.hub = {{"hub.example.org", 47000}};
  invite.run_id = "f3a9c2d871b04e65";
  invite.run_name = "gcide-demo";
  invite.authority_pin = sha256(as_bytes("hub"));
  invite.id = "inv-5kq2";
  invite.secret = Bytes(32, std::byte{7});
  const auto now = std::chrono::time_point_cast<std::chrono::seconds>(std::chrono::system_clock::now());
  invite.expires = now + left;
  return invite;
}
QString invite_text(std::chrono::hours left = std::chrono::hours(24)) {
  return QString::fromStdString(encode_invite(plain_invite(left)).value());
}

void set_up(GuiNode& world, bool joined, bool fails) {
  FakeAgent& agent = world.agent;
  if (!joined) agent.become(unjoined_state());
  nlohmann::json gpus = nlohmann::json::array();
  for (int i = 0; i < 8; ++i)
    gpus.push_back({{"name", "H100 80GB HBM3"}, {"memory_total_bytes", 85e9}, {"utilisation", 0.0}});
  agent.say({{"gpus", gpus}});
  furnish(agent, check_rows_of_a_node(fails));
  agent.answer("invite.look", [&agent](const auto&) {
    agent.tell("invite.looked", {{"ok", true},
                                 {"address", "hub.example.org:47000"},
                                 {"run_id", "f3a9c2d871b04e65"},
                                 {"run_name", "gcide-demo"},
                                 {"operator", "Ada Lovelace"},
                                 {"model", "llama, 12 layers of 768, 257 tokens"},
                                 {"parameters", 85'348'608u},
                                 {"costs",
                                  {{"round_bytes", 174'000'000u},
                                   {"join_bytes", 683'000'000u},
                                   {"disk_bytes", 2'900'000'000u},
                                   {"memory_bytes", 3'700'000'000u},
                                   {"memory_beside_gpus_bytes", 2'300'000'000u},
                                   {"gpu_memory_bytes", 3'300'000'000u}}},
                                 {"pin", to_hex(plain_invite().authority_pin)}});
    return nlohmann::json{{"started", true}};
  });
  world.node.settings().reload();
  QTest::qWait(50);
}

// To the next page, once this one lets it.
void next(JoinWizard& wizard) {
  const int from = wizard.currentId();
  for (const auto which : {QWizard::NextButton, QWizard::CommitButton}) {
    QAbstractButton* button = wizard.button(which);
    if (!button->isVisible()) continue;
    if (!QTest::qWaitFor([button] { return button->isEnabled(); })) qFatal("page %d does not let go on", from);
    QTest::mouseClick(button, Qt::LeftButton);
    if (!QTest::qWaitFor([&] { return wizard.currentId() != from; })) qFatal("page %d is not left", from);
    return;
  }
}

void wizard_pages() {
  GuiNode world;
  set_up(world, false, false);
  JoinWizard wizard(world.node);
  wizard.show();
  take("wizard-invite-empty", wizard);
  wizard.setInviteText(invite_text().chopped(12));
  take("wizard-invite-cut", wizard);
  wizard.setInviteText("The invite is in the letter of Tuesday.");
  take("wizard-invite-malformed", wizard);
  wizard.setInviteText(invite_text(-std::chrono::hours(3)));
  take("wizard-invite-expired", wizard);
  wizard.setInviteText(invite_text());
  take("wizard-invite-good", wizard);
  next(wizard);
  take("wizard-trust", wizard);
  next(wizard);
  take("wizard-check-warnings", wizard);
  wizard.currentPage()->findChild<QCheckBox*>("accept_warnings")->click();
  next(wizard);
  take("wizard-resources", wizard);
  take_at("wizard-resources-large", wizard, {2560, 1600});
  next(wizard);
  take("wizard-consent", wizard);
  wizard.currentPage()->findChild<QCheckBox*>("agree")->click();
  next(wizard);
  QTest::qWait(kSettle);
  for (const char* stage : {"key", "enrol", "check"})
    world.agent.tell("join.progress", {{"stage", stage}, {"status", "done"}});
  world.agent.tell("join.done", {{"ok", true}});
  world.agent.tell("join.progress", {{"stage", "state"},
                                     {"status", "running"},
                                     {"done_bytes", 1'130'000'000u},
                                     {"total_bytes", 3'400'000'000u},
                                     {"bytes_per_second", 21.4e6},
                                     {"seconds_left", 106.0}});
  take("wizard-joining", wizard);
  world.agent.tell("join.progress",
                   {{"stage", "state"}, {"status", "failed"}, {"text", "no island that has the state answers"}});
  nlohmann::json state = unjoined_state();
  state.merge_patch({{"state", "error"}, {"run_id", "run-1"}, {"agent", {{"restart_in_seconds", 8.0}}}});
  world.agent.become(state);
  world.agent.tell("state.changed", state);
  take("wizard-joining-retrying", wizard);
  state["agent"]["restart_in_seconds"] = nullptr;
  world.agent.become(state);
  world.agent.tell("state.changed", state);
  take("wizard-joining-failed", wizard);
  world.agent.tell("join.done", {{"ok", true}});
}

// What the hub says to an invite, in the place of who it is.
void refused(const char* name, const char* code, const char* message) {
  GuiNode world;
  set_up(world, false, false);
  world.agent.answer("invite.look", [&](const auto&) {
    world.agent.tell("invite.looked", {{"ok", false}, {"code", code}, {"message", message}});
    return nlohmann::json{{"started", true}};
  });
  JoinWizard wizard(world.node);
  wizard.show();
  wizard.setInviteText(invite_text());
  next(wizard);
  take(name, wizard);
}

void wizard_problems() {
  {
    GuiNode world;
    set_up(world, false, true);
    JoinWizard wizard(world.node);
    wizard.show();
    wizard.setInviteText(invite_text());
    next(wizard);
    QTest::qWait(kSettle);
    next(wizard);
    take("wizard-check-fails", wizard);
    take_at("wizard-check-large", wizard, {1280, 800});
  }
  {
    GuiNode world;
    set_up(world, false, true);
    world.agent.answer("check.run", [&world](const auto&) {
      const std::vector<nlohmann::json> rows = check_rows_of_a_node(true);
      for (std::size_t i = 0; i < 4; ++i) world.agent.tell("check.result", {{"row", rows[i]}});
      return nlohmann::json{{"started", true}};
    });
    JoinWizard wizard(world.node);
    wizard.show();
    wizard.setInviteText(invite_text());
    next(wizard);
    QTest::qWait(kSettle);
    next(wizard);
    take("wizard-check-running", wizard);
  }
  refused("wizard-trust-mismatch", "pin_mismatch", "hub.example.org:47000 shows another key than the invite's");
  refused("wizard-trust-unreachable", "unreachable", "hub.example.org:47000: connection refused");
  refused("wizard-trust-other-run", "invite_other_run", "the hub serves the run atlas-150m");
  refused("wizard-trust-used", "invite_used", "4 islands joined with it");
}

void dialogs() {
  GuiNode world;
  set_up(world, true, true);
  AddNodeDialog add;
  add.show();
  take("add-node", add);
  add.findChild<QLineEdit*>("url")->setText("http://node");
  take("add-node-wrong", add);
  DiagnosticsDialog diagnostics(world.node);
  diagnostics.show();
  take("diagnostics", diagnostics);
}

HubState hub_state(unsigned islands) {
  HubState state = training_run(islands, 42);
  state.last_validation = HubState::Validation{40, 2.31};
  for (unsigned round = 0; round < state.outer_step; ++round) {
    state.past.push_back({.round = round, .mean_loss_nats = loss_of_round(round)});
    if (round % 5 == 0) state.validations.push_back({round, round == 0 ? 5.55 : loss_of_round(round) + 0.07});
  }
  state.safe_outer_step = state.outer_step;
  state.disks_with_committed = islands;
  return state;
}

constexpr const char* kSummary = R"({"rounds":40,"training_seconds":298.4,"first_validation_loss":5.546,
  "last_validation_loss":1.924,"tokens_per_second":8421,"tokens":2457600,"parameters":820480,"bytes_sent":68812800,
  "bytes_data_parallel_fp32":2362982400,"compute_utilisation":0.94,"outer_hashes_equal":true,
  "export_dir":"/home/ana/.local/state/atoll/demo/app/model",
  "sample":"An atoll is a ring of small islands, or a part of the sea which is inclosed by a reef. [Obs.] Chaucer."})";

// `atoll demo` that says what it does, and ends when it is told to, leaving what it came to.
class DemoCommand final : public CommandRun {
 public:
  void start() override {
    QTimer::singleShot(0, this, [this] { Q_EMIT output("3 islands and a hub started\n"); });
  }
  void interrupt() override {}
  void end(const QString& summary) {
    QFile file(summary);
    if (file.open(QIODevice::WriteOnly)) file.write(kSummary);
    file.close();
    Q_EMIT ended(0);
  }
};

void start_demo(DemoPage& page) {
  page.resize(1060, 740);
  page.show();
  page.findChild<QLineEdit*>("demo_text")->setText(QCoreApplication::applicationFilePath());
}

void demo() {
  QTemporaryDir state;
  qputenv("XDG_STATE_HOME", state.path().toLocal8Bit());
  GuiNode world;
  DemoCommand* command = nullptr;
  Node node(LocalNode{world.home()}, world.agent.open(), [&command](const CommandRequest&) {
    auto run = std::make_unique<DemoCommand>();
    command = run.get();
    return run;
  });
  DemoPage page(node);
  start_demo(page);
  take("demo", page);
  page.findChild<QPushButton*>("start_demo")->click();
  take("demo-preparing", page);
  FakeAgent hub;
  hub.answer("state.get", hub_state(3).to_json());
  const QString place = state.filePath("atoll/demo/app");
  QDir().mkpath(place + "/hub");
  const SocketBridge bridge(hub, place + "/hub/control.sock");
  QTest::qWait(2500);
  take("demo-running", page);
  command->end(place + "/summary.json");
  take("demo-finished", page);
}

void organise() {
  FakeAgent hub;
  FakeCommands commands;
  QTemporaryDir home;
  const Invite made = plain_invite();
  hub.answer("state.get", hub_state(4).to_json());
  commands.answer({"hub", "islands"}, {.out = R"({"serving":true,"islands":[]})"});
  const nlohmann::json answer = {{"id", made.id},
                                 {"uses", 4},
                                 {"file", nullptr},
                                 {"hub_addresses", {"hub.example.org:47000"}},
                                 {"expires_unix_seconds", made.expires.time_since_epoch().count()},
                                 {"invite", encode_invite(made).value()}};
  commands.answer({"hub", "invite"}, {.out = QByteArray::fromStdString(answer.dump())});
  {
    HubModel none(
        HubHome{home.path().toStdString()},
        [&] {
          hub.refuse({ErrorCode::kNotRunning, "none"});
          return hub.open()();
        },
        commands.run());
    OrganiseWindow window(none);
    none.start();
    window.show();
    take("organise-create-empty", window);
    window.findChild<QLineEdit*>("run_name")->setText("gcide-demo");
    window.findChild<QLineEdit*>("text_directory")->setText(home.path());
    take("organise-create", window);
    take_at("organise-create-large", window, {2560, 1600});
  }
  hub.welcome();
  {
    QTemporaryDir young;
    if (!QFile(young.filePath("run.json")).open(QIODevice::WriteOnly)) return;
    hub.answer("state.get", young_run().to_json());
    HubModel model(HubHome{young.path().toStdString()}, hub.open(), commands.run());
    OrganiseWindow window(model);
    model.start();
    window.show();
    take("organise-hub-empty", window);
    hub.refuse({ErrorCode::kNotRunning, "none"});
    hub.hang_up();
    take("organise-hub-stopped", window);
    hub.welcome();
    hub.answer("state.get", hub_state(4).to_json());
  }
  QFile run(home.filePath("run.json"));
  if (!run.open(QIODevice::WriteOnly)) return;
  HubModel model(HubHome{home.path().toStdString()}, hub.open(), commands.run());
  OrganiseWindow window(model);
  model.start();
  window.show();
  QTest::qWait(kSettle);
  window.findChild<QTableView*>("hub_islands")->selectRow(1);
  take("organise-hub", window);
  take_at("organise-hub-large", window, {1280, 800});
  window.findChild<QPushButton*>("remove")->click();
  auto* question = window.findChild<QDialog*>("question");
  take("organise-remove", *question);
  question->close();
  window.findChild<QPushButton*>("invite")->click();
  auto* dialog = window.findChild<InviteDialog*>();
  dialog->findChild<QSpinBox*>("uses")->setValue(4);  // as the invite that comes says
  dialog->findChild<QPushButton*>("make")->click();
  take("organise-invite", *dialog);
  dialog->findChild<QPushButton*>("show")->click();
  take("organise-invite-shown", *dialog);
}

}  // namespace

int main(int argc, char** argv) {
  const Pictures wanted(argc, argv);
  pictures = &wanted;
  qputenv("ATOLL_PROGRAM", "/bin/true");
  QApplication app(argc, argv);
  QLocale::setDefault(wanted.locale());
  install_translation(app);
  for (const bool in_the_dark : {false, true}) {
    dark = in_the_dark;
    Theme::apply(app, dark);
    for (void (*draw)() : {wizard_pages, wizard_problems, dialogs, demo, organise}) draw();
  }
  return 0;
}
