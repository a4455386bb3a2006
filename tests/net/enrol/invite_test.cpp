#include "net/wire/invite.h"

#include <fmt/format.h>

#include <QtTest>

#include "net/base/encoding.h"

namespace atl {
namespace {

constexpr std::chrono::sys_seconds kNow{std::chrono::seconds(1'800'000'000)};

Invite an_invite() {
  Invite invite;
  invite.hub = {{"hub.example.org", 47000}, {"2001:db8::1", 47000}};
  invite.run_id = "0123456789abcdef";
  invite.run_name = "gcide demo";
  for (std::size_t i = 0; i < invite.authority_pin.size(); ++i) invite.authority_pin[i] = static_cast<std::byte>(i);
  invite.id = "a1b2c3d4e5f6";
  invite.secret.assign(24, std::byte{0x5a});
  invite.expires = kNow + std::chrono::hours(24);
  return invite;
}

// Version 1, frozen.
const std::string kGolden =
    "atoll1.AhUAaHViLmV4YW1wbGUub3JnOjQ3MDAwEwBbMjAwMTpkYjg6OjFdOjQ3MDAwEAAwMTIzNDU2Nzg5YWJjZGVmCgBnY2lkZ"
    "SBkZW1vAAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8MAGExYjJjM2Q0ZTVmNhhaWlpaWlpaWlpaWlpaWlpaWlpaWlpaW"
    "lqAI0trAAAAAA.3bb975ab";

// `body` with the checksum that fits it.
std::string with_checksum(const std::string& body) {
  Bytes crc;
  for (int shift = 24; shift >= 0; shift -= 8) crc.push_back(static_cast<std::byte>(crc32(as_bytes(body)) >> shift));
  return body + "." + hex_encode(crc);
}

std::string with_payload(const Bytes& payload) { return with_checksum("atoll1." + base64url_encode(payload)); }

Bytes payload_of(const std::string& text) {
  const auto first = text.find('.') + 1;
  return base64url_decode(text.substr(first, text.rfind('.') - first)).value();
}

}  // namespace

class InviteTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void what_was_encoded_decodes();
  void version_1_reads_and_writes_as_ever();
  void a_link_and_line_breaks_decode_too();
  void a_damaged_invite_is_malformed_and_says_which_part();
  void a_damaged_invite_is_malformed_and_says_which_part_data();
  void every_single_changed_character_is_noticed();
  void no_truncated_payload_is_believed();
  void a_newer_version_is_unsupported_not_malformed();
  void an_expired_invite_says_so();
  void an_expiry_in_the_far_future_is_told_right();
  void fields_out_of_bounds_are_not_encoded();
  void the_log_form_holds_no_secret();
  void an_argument_that_decodes_is_known_as_an_invite();
};

void InviteTest::what_was_encoded_decodes() {
  const Invite made = an_invite();

  const auto read = decode_invite(encode_invite(made).value(), kNow);

  QVERIFY(read.ok());
  QCOMPARE(read->hub, made.hub);
  QCOMPARE(read->run_id, made.run_id);
  QCOMPARE(read->run_name, made.run_name);
  QCOMPARE(read->authority_pin, made.authority_pin);
  QCOMPARE(read->id, made.id);
  QCOMPARE(read->secret, made.secret);
  QCOMPARE(read->expires, made.expires);
}

void InviteTest::version_1_reads_and_writes_as_ever() {
  QCOMPARE(QString::fromStdString(encode_invite(an_invite()).value()), QString::fromStdString(kGolden));
  QVERIFY(decode_invite(kGolden, kNow).ok());
}

void InviteTest::a_link_and_line_breaks_decode_too() {
  std::string wrapped = "  " + invite_link(kGolden) + "\r\n";
  wrapped.insert(60, "\r\n  ");

  QVERIFY(decode_invite(wrapped, kNow).ok());
}

void InviteTest::a_damaged_invite_is_malformed_and_says_which_part_data() {
  QTest::addColumn<QString>("text");
  QTest::addColumn<QString>("says");
  const auto row = [](const char* name, const std::string& text, const char* says) {
    QTest::newRow(name) << QString::fromStdString(text) << says;
  };
  row("empty", "", "does not begin");
  row("something else", "https://example.org/", "does not begin");
  row("no number", "atoll.abc.def", "does not begin");
  row("prefix alone", "atoll1", "end is missing");
  row("end missing", kGolden.substr(0, kGolden.rfind('.')), "end is missing");
  row("cut short", kGolden.substr(0, kGolden.size() - 3), "checksum");
  std::string changed = kGolden;
  changed[40] = changed[40] == 'A' ? 'B' : 'A';
  row("middle changed", changed, "checksum");
  row("not base64url", with_checksum("atoll1.!!!!"), "base64url");
  row("too long", std::string(kMaxInviteText + 1, 'a'), "too long");
  row("no addresses", with_payload({std::byte{0}}), "lengths");
  Bytes longer = payload_of(kGolden);
  longer.push_back(std::byte{0});
  row("more than its fields", with_payload(longer), "lengths");
}

void InviteTest::a_damaged_invite_is_malformed_and_says_which_part() {
  QFETCH(QString, text);
  QFETCH(QString, says);

  const auto read = decode_invite(text.toStdString(), kNow);

  QCOMPARE(read.error().code, ErrorCode::kInviteMalformed);
  QVERIFY2(QString::fromStdString(read.error().message).contains(says), read.error().message.c_str());
}

void InviteTest::every_single_changed_character_is_noticed() {
  for (std::size_t i = 0; i < kGolden.size(); ++i) {
    std::string changed = kGolden;
    changed[i] = changed[i] == 'x' ? 'y' : 'x';
    QVERIFY(!decode_invite(changed, kNow).ok());
  }
}

void InviteTest::no_truncated_payload_is_believed() {
  const Bytes whole = payload_of(kGolden);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const Bytes part(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    QCOMPARE(decode_invite(with_payload(part), kNow).error().code, ErrorCode::kInviteMalformed);
  }
}

void InviteTest::a_newer_version_is_unsupported_not_malformed() {
  QCOMPARE(decode_invite(with_checksum("atoll2.AAAA"), kNow).error().code, ErrorCode::kVersionUnsupported);
}

void InviteTest::an_expired_invite_says_so() {
  const Invite invite = an_invite();
  const std::string text = encode_invite(invite).value();

  QVERIFY(decode_invite(text, invite.expires - std::chrono::seconds(1)).ok());
  QCOMPARE(decode_invite(text, invite.expires).error().code, ErrorCode::kInviteExpired);
}

void InviteTest::an_expiry_in_the_far_future_is_told_right() {
  Invite invite = an_invite();
  invite.expires = std::chrono::sys_seconds(std::chrono::seconds(253'402'300'799));

  const auto read = decode_invite(encode_invite(invite).value(), kNow);

  QVERIFY(read.ok());
  QVERIFY2(describe(*read).find("expires=9999-12-31T23:59:59Z") != std::string::npos, describe(*read).c_str());
}

void InviteTest::fields_out_of_bounds_are_not_encoded() {
  Invite no_hub = an_invite();
  no_hub.hub.clear();
  Invite short_secret = an_invite();
  short_secret.secret.resize(15);
  Invite escape_in_name = an_invite();
  escape_in_name.run_name = "\x1b[2J";
  Invite override_in_name = an_invite();
  override_in_name.run_name = "run\u202E";
  Invite no_port = an_invite();
  no_port.hub[0].port = 0;

  for (const Invite& invite : {no_hub, short_secret, escape_in_name, override_in_name, no_port}) {
    QCOMPARE(encode_invite(invite).error().code, ErrorCode::kInvalidArgument);
  }
}

// Else it would stay in the list of processes.
void InviteTest::an_argument_that_decodes_is_known_as_an_invite() {
  const std::string text = encode_invite(an_invite()).value();
  const std::string wrapped = fmt::format("{}\r\n{}", text.substr(0, 3), text.substr(3));
  for (const std::string& argument : {text, fmt::format("  {}", text), fmt::format("\n{}", text), invite_link(text),
                                      fmt::format(" {}", invite_link(text)), wrapped}) {
    QVERIFY(decode_invite(argument, kNow).ok());
    QVERIFY(may_be_invite(argument));
  }
  QVERIFY(!may_be_invite("--home"));
}

void InviteTest::the_log_form_holds_no_secret() {
  const Invite invite = an_invite();

  const std::string line = describe(invite);

  QVERIFY(line.find(invite.id) != std::string::npos);
  QVERIFY(line.find(hex_encode(invite.secret)) == std::string::npos);
  QVERIFY(line.find(base64url_encode(invite.secret)) == std::string::npos);
}

}  // namespace atl

QTEST_GUILESS_MAIN(atl::InviteTest)
#include "invite_test.moc"
