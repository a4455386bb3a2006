#include "app/core/recorder.h"

#include <QCoreApplication>
#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "net/base/unix_time.h"
#include "net/control/json_fields.h"
#include "net/control/json_rpc.h"

namespace atl {
namespace {

constexpr std::string_view kGone = "[redacted]";

struct RecorderText {
  Q_DECLARE_TR_FUNCTIONS(RecorderText)
};

// What is secret by its name, in the parameters of whatever method.
constexpr std::array kSecretKeys = {"invite", "input", "secret", "password", "token"};

void cut_named(nlohmann::json& object) {
  for (const char* key : kSecretKeys) {
    if (const auto found = object.find(key); found != object.end() && found->is_string()) *found = kGone;
  }
}

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool begins_with(std::string_view text, std::string_view lower_word) {
  return text.size() >= lower_word.size() &&
         std::equal(lower_word.begin(), lower_word.end(), text.begin(), [](char a, char b) { return a == lower(b); });
}

// "atoll1.", "atoll:join", however written: where it begins.
std::size_t find_invite(std::string_view text, std::size_t from) {
  constexpr std::string_view kName = "atoll";
  for (std::size_t at = from; at < text.size(); ++at) {
    if (lower(text[at]) != 'a' || !begins_with(text.substr(at), kName)) continue;
    const std::string_view rest = text.substr(at + kName.size());
    const std::size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
    if (begins_with(rest, ":join") || (digits > 0 && rest.substr(digits).starts_with('.'))) return at;
  }
  return std::string_view::npos;
}

bool is_escaped(std::string_view text, std::size_t quote) {
  std::size_t backslashes = 0;
  while (backslashes < quote && text[quote - 1 - backslashes] == '\\') ++backslashes;
  return backslashes % 2 == 1;
}

// The whole of each JSON text in which there is an invite: its rest may stand on a line of its own.
std::string cut_invites(std::string_view text) {
  std::string kept;
  std::size_t done = 0;
  for (std::size_t at = find_invite(text, 0); at != std::string_view::npos; at = find_invite(text, done)) {
    std::size_t begin = at, end = at;
    while (begin > done && (text[begin - 1] != '"' || is_escaped(text, begin - 1))) --begin;
    while (end < text.size() && (text[end] != '"' || is_escaped(text, end))) ++end;
    kept.append(text.substr(done, begin - done)).append(kGone);
    done = end;
  }
  if (done == 0) return std::string(text);
  return kept.append(text.substr(done));
}

// Few lines can hold a secret by its name: those that are asked to join, and what commands say over ssh.
bool may_name_a_secret(const QByteArray& line) {
  return line.contains("\"invite\"") || line.contains("\"input\"") || line.contains("\"secret\"") ||
         line.contains("\"password\"") || line.contains("\"token\"") || line.contains("command.output");
}

}  // namespace

QByteArray without_secrets(const QByteArray& line) {
  const std::string text = cut_invites({line.data(), static_cast<std::size_t>(line.size())});
  if (!may_name_a_secret(line)) return QByteArray::fromStdString(text);
  auto parsed = parse_control_json(text);
  // What cannot be read cannot be judged.
  if (!parsed.ok() || !parsed->is_object()) return QByteArray(kGone.data(), kGone.size());
  nlohmann::json& json = *parsed;
  for (const char* part : {"params", "result"}) {
    if (!json.contains(part) || !json[part].is_object()) continue;
    cut_named(json[part]);
    nlohmann::json& data = json[part]["data"];
    if (data.is_object()) {
      cut_named(data);
      if (data.contains("bytes") && data["bytes"].is_string()) data["bytes"] = "";
    } else if (data.is_null()) {
      json[part].erase("data");
    }
  }
  return QByteArray::fromStdString(json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

Result<std::unique_ptr<Recorder>> Recorder::create(const QString& file) {
  std::unique_ptr<Recorder> recorder(new Recorder);
  QFile& out = recorder->file_;
  out.setFileName(file);
  constexpr auto kOwner = QFileDevice::ReadOwner | QFileDevice::WriteOwner;
  if (!out.open(QIODevice::WriteOnly | QIODevice::Truncate, kOwner) || !out.setPermissions(kOwner)) {
    return Error{ErrorCode::kIo, RecorderText::tr("The recording cannot be written to %1: %2. Choose another place.")
                                     .arg(file, out.errorString())
                                     .toStdString()};
  }
  const nlohmann::json header = {
      {"atoll_recording", kRecordingVersion}, {"program", "atoll-gui " ATOLL_VERSION}, {"time", unix_time_now()}};
  if (out.write(QByteArray::fromStdString(header.dump() + "\n")) < 0 || !out.flush()) {
    return Error{ErrorCode::kIo, RecorderText::tr("The recording cannot be written to %1: %2. Choose another place.")
                                     .arg(file, out.errorString())
                                     .toStdString()};
  }
  recorder->clock_.start();
  return recorder;
}

void Recorder::sent(const QByteArray& line) { write("out", line.trimmed()); }
void Recorder::received(const QByteArray& line) { write("in", line); }
void Recorder::closed(const std::string& why) { write("closed", QByteArray::fromStdString(why)); }

void Recorder::write(const char* key, const QByteArray& line) {
  if (!problem_.empty()) return;
  const bool speaks = key[0] != 'c';
  const nlohmann::json json = {{"t", static_cast<double>(clock_.nsecsElapsed()) / 1e9},
                               {key, speaks ? without_secrets(line).toStdString() : cut_invites(line.toStdString())}};
  const QByteArray text =
      QByteArray::fromStdString(json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  if (file_.pos() + text.size() > kMaxRecordingBytes) {
    problem_ = RecorderText::tr("The recording has its full size of 2 GiB, and ends here.").toStdString();
  } else if (file_.write(text) != text.size() || !file_.flush()) {
    std::error_code unknown;
    const auto space = std::filesystem::space(file_.fileName().toStdString(), unknown);
    const bool full = !unknown && space.available < static_cast<std::uintmax_t>(text.size());
    const QString why = full ? RecorderText::tr("the disk is full") : file_.errorString();
    problem_ = RecorderText::tr("The recording ends here, for %1 cannot be written: %2.")
                   .arg(file_.fileName(), why)
                   .toStdString();
  }
  if (!problem_.empty()) file_.close();
}

}  // namespace atl
