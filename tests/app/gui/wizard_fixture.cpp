#include "tests/app/gui/wizard_fixture.h"
#include "tests/fakes/patience.h"

#include <QCheckBox>

namespace atl::test {

Invite plain_invite() {
  Invite invite;
  invite.hub = {{"hub.example.org", 47000}};
  invite.run_id = "run-1";
  invite.run_name = "gcide-demo";
  invite.authority_pin.fill(std::byte{0xab});
  invite.id = "inv-1";
  invite.secret = Bytes(16, std::byte{7});
  // The same each time, whatever second it is.
  static const auto now = std::chrono::time_point_cast<std::chrono::seconds>(std::chrono::system_clock::now());
  invite.expires = now + std::chrono::hours(24);
  return invite;
}

QString text_of(const Invite& invite) { return QString::fromStdString(encode_invite(invite).value()); }
QString good_invite() { return text_of(plain_invite()); }

nlohmann::json looked() {
  return {{"ok", true},
          {"address", "hub.example.org:47000"},
          {"run_id", "run-1"},
          {"run_name", "gcide-demo"},
          {"operator", "Ada"},
          {"model", "llama"},
          {"parameters", 1'234'567u},
          {"costs",
           {{"round_bytes", 2'500'000},
            {"join_bytes", 9'900'000},
            {"disk_bytes", 52'000'000},
            {"memory_bytes", 240'000'000},
            {"memory_beside_gpus_bytes", 220'000'000},
            {"gpu_memory_bytes", 2'100'000'000}}},
          {"pin", std::string(64, '?')}};
}

void WizardFixture::begin() {
  QLocale::setDefault(QLocale::c());
  qputenv("ATOLL_PROGRAM", "/bin/true");  // nothing is started by a test
}

void WizardFixture::open() {
  world_ = std::make_unique<GuiNode>();
  agent().become(unjoined_state());
  agent().answer("check.run", [this](const auto&) {
    tell_check(agent(), {check_row("disk.free", "pass", "812 GB")});
    return nlohmann::json{{"started", true}};
  });
  agent().answer("invite.look", [this](const auto&) {
    nlohmann::json answer = looked();
    answer["pin"] = to_hex(plain_invite().authority_pin);
    agent().tell("invite.looked", answer);
    return nlohmann::json{{"started", true}};
  });
  agent().answer(
      "config.get",
      nlohmann::json{
          {"values",
           {{{"key", "limits.upload"}, {"value", "none"}, {"default", "none"}, {"origin", "default"}, {"meaning", "m"}},
            {{"key", "schedule.hours"}, {"value", ""}, {"default", ""}, {"origin", "default"}, {"meaning", "m"}},
            {{"key", "island.device"}, {"value", "gpu"}, {"default", "auto"}, {"origin", "file"}, {"meaning", "m"}},
            {{"key", "limits.gpu_power"}, {"value", "0"}, {"default", "0"}, {"origin", "default"}, {"meaning", "m"}}}},
          {"file", "/c/config.toml"},
          {"settings", "/s/settings.json"}});
  world_->node.settings().reload();
  wizard_ = std::make_unique<JoinWizard>(world_->node);
  wizard_->show();
  QVERIFY(QTest::qWaitForWindowExposed(wizard_.get()));
}

void WizardFixture::close() {
  wizard_.reset();
  world_.reset();
}

void WizardFixture::go_to(int page) {
  while (wizard_->currentId() < page) {
    const int before = wizard_->currentId();
    if (before == JoinWizard::kInvite) paste(good_invite());
    if (before == JoinWizard::kConsent) {
      find<QCheckBox>("agree")->setChecked(true);
      commit();
    } else {
      QTRY_VERIFY(can_go_on());
      next();
    }
    QTRY_VERIFY(wizard_->currentId() != before);
  }
}

}  // namespace atl::test
