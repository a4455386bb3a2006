#include "app/core/playback.h"

#include <fmt/format.h>

#include <QPointer>
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "net/control/control_server.h"
#include "net/control/json_rpc.h"

namespace atl {
namespace {

constexpr std::chrono::milliseconds kTurn{24};
constexpr double kLongestWaitMs = 60'000;
constexpr std::size_t kMaxAsked = 64;

}  // namespace

Playback::Playback(QString file, double speed)
    : path_(std::move(file)), speed_(std::isfinite(speed) && speed > 0 ? speed : 1) {
  timer_.setSingleShot(true);
  connect(&timer_, &QTimer::timeout, this, &Playback::turn);
}

Playback::~Playback() { stop_ = true; }

void Playback::play(const QObject* player) {
  player_ = player;
  told_ = false;
  if (!playing_) since_ = Clock::now();
  playing_ = true;
  if (!index_ && !broken_) return prepare();
  timer_.start(0);
}

void Playback::pause(const QObject* player) {
  if (player == player_) stop();
}

void Playback::stop() {
  at_ = now().count();
  playing_ = false;
  timer_.stop();
}

void Playback::prepare() {
  if (reader_.joinable()) return;
  reader_ = std::jthread([this] {
    auto index = std::make_shared<Result<RecordingIndex>>(RecordingIndex::read(path_, stop_));
    // Queued: discarded with this, whose destructor waits for the thread.
    QMetaObject::invokeMethod(
        this, [this, index] { take(std::move(*index)); }, Qt::QueuedConnection);
  });
}

void Playback::take(Result<RecordingIndex> index) {
  if (!index.ok()) {
    broken_ = index.error();
  } else {
    index_ = std::move(*index);
    lines_.setFileName(path_);
    answers_.setFileName(path_);
    if (!lines_.open(QIODevice::ReadOnly) || !answers_.open(QIODevice::ReadOnly)) {
      broken_ = Error{ErrorCode::kIo, lines_.errorString().toStdString()};
    }
    lines_.readLine(kMaxRecordedLineBytes);  // the header
    readNext();
  }
  since_ = Clock::now();
  if (playing_) timer_.start(0);
}

Seconds Playback::now() const {
  if (passing_) return Seconds(*passing_);
  if (!playing_ || !index_) return Seconds(at_);
  const double now = at_ + Seconds(Clock::now() - since_).count() * speed_;
  return Seconds(next_ ? std::min(now, std::max(at_, next_->t)) : std::max(at_, last_t_));
}

// Events, sent lines and ends of connections; what was answered is told when it is asked for.
bool Playback::readNext() {
  next_.reset();
  while (!next_ && !lines_.atEnd()) {
    auto line = parse_recorded_line(line_reader_.next(lines_));
    cut_off_ = !line.ok();
    if (line.ok()) next_ = std::move(*line);
  }
  return next_.has_value();
}

void Playback::turn() {
  if (!playing_) return;
  const QPointer<Playback> alive(this);
  if (broken_) {
    playing_ = false;
    Q_EMIT over(*broken_);
    return;
  }
  const auto until = Clock::now() + kTurn;
  // What kept the program busy before the first line is no part of the recording.
  if (first_) since_ = Clock::now();
  const double reached = at_ + Seconds(Clock::now() - since_).count() * speed_;
  if (!told_ && next_ && (first_ || next_->t <= reached)) {
    told_ = true;
    first_ = false;
    Q_EMIT began();
    if (!alive || !playing_) return;
  }
  while (next_ && next_->t <= reached) {
    const RecordedLine line = std::move(*next_);
    readNext();
    passOn(line);
    if (!alive || !playing_) return;
    // The clock has not gone on meanwhile for who looks at it.
    if (Clock::now() >= until) return timer_.start(0);
  }
  if (!next_) {
    stop();
    const QString how =
        cut_off_ ? tr("The recording breaks off here: its last line is not whole.") : tr("The recording ends here.");
    Q_EMIT over({ErrorCode::kAborted, how.toStdString()});
    return;
  }
  timer_.start(static_cast<int>(std::clamp(std::ceil((next_->t - reached) / speed_ * 1000), 0.0, kLongestWaitMs)));
}

// Who hears a line looks at the clock: it is as late as the line is.
void Playback::passOn(const RecordedLine& line) {
  passing_ = last_t_ = std::max(at_, line.t);
  const QPointer<Playback> alive(this);
  tell(line);
  if (alive) passing_.reset();
}

void Playback::tell(const RecordedLine& line) {
  switch (line.kind) {
    case RecordedLine::Kind::kClosed:
      at_ = std::max(at_, line.t);
      playing_ = false;
      states_asked_.clear();
      Q_EMIT over({ErrorCode::kPeerLost, line.text});
      break;
    case RecordedLine::Kind::kSent:
      if (line.text.find("\"method\":\"state.get\"") == std::string::npos) break;
      if (const auto request = decode_request(line.text);
          request.ok() && request->id.is_number_integer() && states_asked_.size() < kMaxAsked) {
        states_asked_.insert(request->id.get<std::int64_t>());
      }
      break;
    case RecordedLine::Kind::kReceived:
      if (line.text.find("\"method\":\"event\"") != std::string::npos) {
        Q_EMIT event(QByteArray::fromStdString(line.text));
      } else if (!states_asked_.empty()) {
        passOnState(line);
      }
      break;
  }
}

void Playback::passOnState(const RecordedLine& line) {
  const auto answer = parse_recorded_answer(line.text);
  if (!answer || states_asked_.erase(answer->id) == 0 || answer->result.empty()) return;
  const std::string told = fmt::format(
      R"({{"jsonrpc":"2.0","method":"event","params":{{"event":"state.changed","time":{:.6f},"data":{}}}}})",
      index_->began() + line.t, answer->result);
  Q_EMIT event(QByteArray::fromStdString(told));
}

QByteArray Playback::answer(const QByteArray& text) {
  const auto request = decode_request({text.data(), static_cast<std::size_t>(text.size())});
  if (!request.ok()) return QByteArray::fromStdString(encode_response(nullptr, request.error())).trimmed();
  const auto respond = [&](const Result<nlohmann::json>& result) {
    return QByteArray::fromStdString(encode_response(request->id, result)).trimmed();
  };
  const nlohmann::json cursor = request->params.value("cursor", nlohmann::json());
  const qint64 offset = !index_            ? -1
                        : cursor.is_null() ? index_->find(request->method, request->params.dump(), now().count())
                                           : index_->findSame(request->method, request->params.dump(), now().count());
  if (offset >= 0 && answers_.seek(offset)) {
    const auto line = parse_recorded_line(answers_.readLine(kMaxRecordedLineBytes));
    const auto reply = line.ok() ? decode_reply(line->text) : Result<std::variant<RpcResponse, RpcEvent>>(line.error());
    if (reply.ok() && std::holds_alternative<RpcResponse>(*reply)) return respond(std::get<RpcResponse>(*reply).result);
  }
  // Nobody has gone on from there yet.
  if (!cursor.is_null()) {
    return respond(nlohmann::json{{"lines", nlohmann::json::array()}, {"cursor", cursor}, {"more", false}});
  }
  // Recorded while the connection stood already.
  if (request->method == "hello") {
    return respond(nlohmann::json{{"version", kControlVersion}, {"program", index_ ? index_->program() : ""}});
  }
  if (request->method == "events.subscribe") return respond(nlohmann::json{{"first", 1u}, {"last", 0u}});
  return respond(Error{ErrorCode::kNotFound, tr("This is a recording: nothing was answered to %1 in it.")
                                                 .arg(QString::fromStdString(request->method))
                                                 .toStdString()});
}

}  // namespace atl
