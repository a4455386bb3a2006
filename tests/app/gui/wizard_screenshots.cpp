// atoll-gui-wizard-screenshots OUTDIR [FILTER [LANGUAGE]]: draws the wizard's pages, organising a run, the demo,
// dialogs, and the pages Check, Logs and Settings, light and dark, for people to look at. FILTER: only pictures whose
// name contains it.
#include <functional>

#include <QAbstractButton>
#include <QApplication>
#include <QCheckBox>
#include <QDir>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QTableView>

#include "app/agent/files/tar_archive.h"
#include "app/config/config_keys.h"
#include "app/core/hub_model.h"
#include "app/gui/add_node_dialog.h"
#include "app/gui/check_page.h"
#include "app/gui/demo/demo_progress.h"
#include "app/gui/demo/demo_runner.h"
#include "app/gui/demo_page.h"
#include "app/gui/diagnostics_dialog.h"
#include "app/gui/first_start.h"
#include "app/gui/join_wizard/join_wizard.h"
#include "app/gui/logs_page.h"
#include "app/gui/look/theme.h"
#include "app/gui/organise/invite_dialog.h"
#include "app/gui/organise/organise_window.h"
#include "app/gui/settings_page.h"
#include "app/gui/translation.h"
#include "net/base/sha256.h"
#include "net/wire/invite.h"
#include "tests/app/gui/gui_node.h"

using namespace atl;
using namespace atl::test;

namespace {

constexpr int kSettle = 350;  // milliseconds: answers come, layouts follow

QString directory, filter;

void take(const char* name, QWidget& widget) {
  QTest::qWait(kSettle);
  const bool dark = qApp->palette().color(QPalette::Window).lightness() < 128;
  const QString file = QString("%1/%2-%3.png").arg(directory, QString(name), QString(dark ? "dark" : "light"));
  if (!widget.grab().save(file)) qFatal("%s cannot be written", qPrintable(file));
  std::printf("%s\n", qPrintable(file));
}

Invite plain_invite() {
  Invite invite;
  invite.hub = {{"hub.example.org", 47000}};
  invite.run_id = "f3a9c2d871b04e65";
  invite.run_name = "gcide-demo";
  invite.authority_pin = sha256(as_bytes("hub"));
  invite.id = "inv-5kq2";
  invite.secret = Bytes(32, std::byte{7});
  const auto now = std::chrono::time_point_cast<std::chrono::seconds>(std::chrono::system_clock::now());
  invite.expires = now + std::chrono::hours(24);
  return invite;
}
QString invite_text() { return QString::fromStdString(encode_invite(plain_invite()).value()); }

std::vector<nlohmann::json> rows(bool fails) {
  std::vector<nlohmann::json> list = {check_row("cpu", "skip", "64 cores, AVX-512; the GPUs compute"),
                                      check_row("ram", "pass", "1.1 TB >= 26 GB for this run"),
                                      check_row("host.nofile", "warn", "8192 < 65536 open files",
                                                "as a service: LimitNOFILE=65536; in a shell: ulimit -n 65536"),
                                      check_row("net.cc", "warn", "cubic; long fast links want bbr",
                                                "modprobe tcp_bbr && sysctl -w net.ipv4.tcp_congestion_control=bbr"),
                                      check_row("gpu.driver", "pass", "550.54"),
                                      check_row("gpu.model", "pass", "8x H100 80GB HBM3"),
                                      check_row("gpu.memory", "pass", "80 GB each, 41 GB for this run"),
                                      check_row("gpu.ecc", "pass", "on, no uncorrected errors"),
                                      check_row("net.rtt", "pass", "24 ms to hub.example.org"),
                                      check_row("clock", "pass", "0.02 s off")};
  if (fails)
    list.insert(list.begin() + 2,
                check_row("disk.free", "fail", "212 GB < 480 GB for this run", "choose another directory with --data"));
  return list;
}

void set_up(GuiNode& world, bool joined, bool fails) {
  FakeAgent& agent = world.agent;
  if (!joined) agent.become(unjoined_state());
  nlohmann::json gpus = nlohmann::json::array();
  for (int i = 0; i < 8; ++i)
    gpus.push_back({{"name", "H100 80GB HBM3"}, {"memory_total_bytes", 85e9}, {"utilisation", 0.0}});
  agent.say({{"gpus", gpus}});
  agent.answer("check.run", [&agent, fails](const auto&) {
    tell_check(agent, rows(fails));
    return nlohmann::json{{"started", true}};
  });
  agent.answer("invite.look", [&agent](const auto&) {
    agent.tell("invite.looked", {{"ok", true},
                                 {"address", "hub.example.org:47000"},
                                 {"run_id", "f3a9c2d871b04e65"},
                                 {"run_name", "gcide-demo"},
                                 {"operator", "Ada Lovelace"},
                                 {"model", "llama, 12 layers of 768, 257 tokens"},
                                 {"parameters", 162'000'000u},
                                 {"pin", to_hex(plain_invite().authority_pin)}});
    return nlohmann::json{{"started", true}};
  });
  nlohmann::json values = nlohmann::json::array();
  for (const ConfigKey& key : config_keys()) {
    const std::string name = key.name;
    const bool set = name == "limits.upload";
    const bool overruled = name == "log.level";
    values.push_back({{"key", name},
                      {"value", set ? "20 Mbit/s" : key.default_value},
                      {"default", key.default_value},
                      {"origin", set         ? "settings"
                                 : overruled ? "ATOLL_LOG_LEVEL"
                                             : "default"},
                      {"meaning", key.meaning}});
  }
  agent.answer("config.get", nlohmann::json{{"values", values},
                                            {"file", "/home/me/.config/atoll/config.toml"},
                                            {"settings", "/home/me/.local/state/atoll/settings.json"}});
  agent.answer("config.set", nlohmann::json{{"values", nlohmann::json::array()}});
  agent.answer("diag.create", [](const nlohmann::json& params) {
    TarArchive archive(1'763'700'000);
    archive.add("atoll-diag/agent.log",
                "2026-11-21T21:36:32.125 info agent started version=0.1.0\n2026-11-21T21:36:33.001 warning edge slow "
                "island=isl-bbbb\n");
    archive.add("atoll-diag/config.json", "{}\n");
    archive.add("atoll-diag/system.txt", "atoll 0.1.0\nLinux 6.1.0 x86_64\n");
    const std::string bytes = archive.take();
    QFile file(QString::fromStdString(params["file"].get<std::string>()));
    if (file.open(QIODevice::WriteOnly)) file.write(bytes.data(), static_cast<qint64>(bytes.size()));
    return nlohmann::json{{"file", params["file"]}, {"bytes", bytes.size()}, {"entries", nlohmann::json::array()}};
  });
  world.node.settings().reload();
  QTest::qWait(50);
}

void next(JoinWizard& wizard) {
  for (const auto which : {QWizard::NextButton, QWizard::CommitButton}) {
    if (wizard.button(which)->isVisible()) return QTest::mouseClick(wizard.button(which), Qt::LeftButton);
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
  wizard.setInviteText(invite_text());
  take("wizard-invite-good", wizard);
  next(wizard);
  take("wizard-trust", wizard);
  next(wizard);
  take("wizard-check-warnings", wizard);
  wizard.currentPage()->findChild<QCheckBox*>("accept_warnings")->click();
  next(wizard);
  take("wizard-resources", wizard);
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
  take("wizard-joining-failed", wizard);
  world.agent.tell("join.done", {{"ok", true}});
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
  }
  GuiNode world;
  set_up(world, false, false);
  world.agent.answer("invite.look", [&world](const auto&) {
    world.agent.tell("invite.looked", {{"ok", false},
                                       {"code", "pin_mismatch"},
                                       {"message", "hub.example.org:47000 shows another key than the invite's"}});
    return nlohmann::json{{"started", true}};
  });
  JoinWizard wizard(world.node);
  wizard.show();
  wizard.setInviteText(invite_text());
  next(wizard);
  take("wizard-trust-mismatch", wizard);
}

void pages() {
  GuiNode world;
  set_up(world, true, true);
  const auto show = [&](const char* name, QWidget& page) {
    page.resize(1060, 740);
    page.show();
    if (auto* quick = page.findChild<QPushButton*>("quick")) quick->click();
    QTest::qWait(kSettle);
    if (auto* table = page.findChild<QTableView*>("check_rows")) table->selectRow(2);
    take(name, page);
    page.hide();
  };
  FirstStart first(world.node);
  CheckPage check(world.node);
  LogsPage logs(world.node);
  SettingsPage settings(world.node);
  DemoPage demo(world.node);
  show("first-start", first);
  show("check", check);
  show("logs", logs);
  show("settings", settings);
  show("demo", demo);
  AddNodeDialog add;
  add.show();
  add.findChild<QLineEdit*>("url")->setText("http://node");
  take("add-node", add);
  DiagnosticsDialog diagnostics(world.node);
  diagnostics.show();
  take("diagnostics", diagnostics);
}

HubState hub_state(unsigned islands) {
  HubState state;
  state.run_id = "f3a9c2d871b04e65";
  state.name = "gcide-demo";
  state.addresses = {"hub.example.org:47000"};
  state.phase = "training";
  state.outer_step = 42;
  state.round_open = true;
  state.inner_steps = 500;
  state.min_islands = 2;
  for (unsigned i = 0; i < 32; ++i) {
    HubState::Round round;
    round.round = 10 + i;
    round.mean_loss_nats = 2.2 + 3 * std::exp(-double(i) / 8);
    state.rounds.push_back(round);
  }
  state.last_validation = HubState::Validation{40, 2.31};
  const char* names[] = {"basement", "garage", "attic", "node7"};
  for (unsigned i = 0; i < islands; ++i) {
    HubState::Island island;
    island.id = "isl-" + std::to_string(i);
    island.name = names[i];
    island.state = "training";
    island.phase = i == 1 ? "syncing" : "training";
    island.inner_step = 371 - 20 * i;
    island.loss_nats = 2.2 + 0.01 * i;
    island.tokens_per_second = 31'815.0 - 2000 * i;
    island.bytes_sent = 1'900'000'000u;
    island.rounds_accepted = 41;
    island.last_seen_seconds = 1;
    state.islands.push_back(island);
  }
  return state;
}

void organise() {
  FakeAgent hub;
  FakeCommands commands;
  QTemporaryDir home;
  hub.answer("state.get", hub_state(4).to_json());
  commands.answer({"hub", "islands"}, {.out = R"({"serving":true,"islands":[]})"});
  commands.answer(
      {"hub", "invite"},
      {.out =
           QByteArray(
               R"({"id":"inv-5kq2","uses":4,"file":null,"hub_addresses":["h:1"],"expires_unix_seconds":1999999999,"invite":")") +
           invite_text().toUtf8() + "\"}"});
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
    window.findChild<QLineEdit*>("run_name")->setText("gcide-demo");
    take("organise-create", window);
  }
  hub.welcome();
  QFile run(home.filePath("run.json"));
  if (!run.open(QIODevice::WriteOnly)) return;
  HubModel model(HubHome{home.path().toStdString()}, hub.open(), commands.run());
  OrganiseWindow window(model);
  model.start();
  window.show();
  take("organise-hub", window);
  window.findChild<QPushButton*>("invite")->click();
  auto* dialog = window.findChild<InviteDialog*>();
  dialog->findChild<QPushButton*>("make")->click();
  take("organise-invite", *dialog);
  dialog->findChild<QPushButton*>("show")->click();
  take("organise-invite-shown", *dialog);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: atoll-gui-wizard-screenshots OUTDIR [FILTER [LANGUAGE]]\n");
    return 2;
  }
  if (qEnvironmentVariableIsEmpty("QT_QPA_PLATFORM")) qputenv("QT_QPA_PLATFORM", "offscreen");
  qputenv("ATOLL_PROGRAM", "/bin/true");
  QApplication app(argc, argv);
  directory = QString::fromLocal8Bit(argv[1]);
  filter = argc > 2 ? QString::fromLocal8Bit(argv[2]) : QString();
  QLocale::setDefault(argc > 3 ? QLocale(QString::fromLocal8Bit(argv[3]))
                               : QLocale(QLocale::English, QLocale::UnitedKingdom));
  install_translation(app);
  QDir().mkpath(directory);
  const std::pair<const char*, void (*)()> parts[] = {
      {"wizard", wizard_pages}, {"problems", wizard_problems}, {"pages", pages}, {"organise", organise}};
  for (const bool dark : {false, true}) {
    Theme::apply(app, dark);
    for (const auto& [name, draw] : parts) {
      if (QString(name).contains(filter)) draw();
    }
  }
  return 0;
}
