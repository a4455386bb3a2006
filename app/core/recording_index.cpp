#include "app/core/recording_index.h"

#include <QCoreApplication>
#include <QFile>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/core/recorder.h"
#include "net/base/json_text.h"
#include "net/control/json_rpc.h"

namespace atl {
namespace {

constexpr std::size_t kMaxOpenCalls = 4096;
constexpr int kMaxHeaderDepth = 4;

struct Recording {
  Q_DECLARE_TR_FUNCTIONS(Recording)
};

struct OpenCall {
  std::string method, params;
};

Result<nlohmann::json> read_header(QFile& file) {
  auto header =
      parse_bounded_json(file.readLine(kMaxRecordedLineBytes).toStdString(), kMaxRecordedLineBytes, kMaxHeaderDepth);
  if (!header.ok() || !header->is_object() || !header->contains("atoll_recording")) {
    return Error{ErrorCode::kCorrupt,
                 Recording::tr("%1 is no recording of Atoll's.").arg(file.fileName()).toStdString()};
  }
  if ((*header)["atoll_recording"] != kRecordingVersion) {
    return Error{ErrorCode::kVersionUnsupported,
                 Recording::tr("%1 was recorded by another version of Atoll; open it with that one.")
                     .arg(file.fileName())
                     .toStdString()};
  }
  return header;
}

// Its header, with the file at the line after it.
Result<nlohmann::json> open_recording_file(QFile& file) {
  if (!file.open(QIODevice::ReadOnly)) {
    return Error{ErrorCode::kNotFound,
                 Recording::tr("%1 cannot be read: %2").arg(file.fileName(), file.errorString()).toStdString()};
  }
  return read_header(file);
}

}  // namespace

Status check_recording(const QString& path) {
  QFile file(path);
  const auto header = open_recording_file(file);
  return header.ok() ? ok_status() : Status(header.error());
}

bool ends_within_a_line(const QString& path) {
  QFile file(path);
  char last = '\n';
  const bool read = file.open(QIODevice::ReadOnly) && file.seek(std::max<qint64>(file.size() - 1, 0));
  return read && file.getChar(&last) && last != '\n';
}

Result<RecordingIndex> RecordingIndex::read(const QString& path, const std::atomic<bool>& stop) {
  QFile file(path);
  RecordingIndex index;
  ATOLL_ASSIGN_OR_RETURN(const nlohmann::json header, open_recording_file(file));
  const nlohmann::json program = header.value("program", nlohmann::json());
  const nlohmann::json began = header.value("time", nlohmann::json());
  index.program_ = program.is_string() ? program.get<std::string>() : "";
  index.began_ = began.is_number() ? began.get<double>() : 0;
  std::map<std::int64_t, OpenCall> open;
  RecordingLines lines;
  while (!file.atEnd()) {
    if (stop) return Error{ErrorCode::kAborted, "closed"};
    const qint64 offset = file.pos();
    const QByteArray text = lines.next(file);
    if (is_recorded_event(text)) continue;
    const auto line = parse_recorded_line(text);
    if (!line.ok()) continue;  // the last one of a program that was killed
    if (line->kind == RecordedLine::Kind::kClosed) open.clear();
    if (line->kind == RecordedLine::Kind::kSent) {
      const auto request = decode_request(line->text);
      if (!request.ok() || !request->id.is_number_integer() || open.size() >= kMaxOpenCalls) continue;
      open[request->id.get<std::int64_t>()] = {request->method, request->params.dump()};
    } else if (line->kind == RecordedLine::Kind::kReceived) {
      const auto answer = parse_recorded_answer(line->text);
      const auto call = answer ? open.find(answer->id) : open.end();
      if (call == open.end()) continue;
      index.by_method_[call->second.method].push_back({line->t, offset});
      index.by_call_[call->second.method + ' ' + call->second.params].push_back({line->t, offset});
      open.erase(call);
    }
  }
  return index;
}

qint64 RecordingIndex::choose(const Answers& answers, double t) {
  const auto later = std::ranges::upper_bound(answers, t, {}, &Answer::t);
  return later == answers.begin() ? answers.front().offset : std::prev(later)->offset;
}

qint64 RecordingIndex::findSame(const std::string& method, const std::string& params, double t) const {
  const auto same = by_call_.find(method + ' ' + params);
  return same != by_call_.end() && same->second.front().t <= t ? choose(same->second, t) : -1;
}

qint64 RecordingIndex::find(const std::string& method, const std::string& params, double t) const {
  if (const auto same = by_call_.find(method + ' ' + params); same != by_call_.end()) return choose(same->second, t);
  const auto like = by_method_.find(method);
  return like == by_method_.end() ? -1 : choose(like->second, t);
}

}  // namespace atl
