#include "app/core/playback.h"

#include <QPointer>
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "net/control/control_server.h"
#include "net/control/json_rpc.h"

namespace atl {
namespace {

constexpr std::chrono::milliseconds kTurn{12};
constexpr double kLongestWaitMs = 60'000;

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
    answers_.setFileName(path_);
    if (!answers_.open(QIODevice::ReadOnly)) broken_ = Error{ErrorCode::kIo, answers_.errorString().toStdString()};
    if (const Status opened = lines_.open(path_, index_->began()); !opened.ok()) broken_ = opened.error();
  }
  since_ = Clock::now();
  if (playing_) timer_.start(0);
}

Seconds Playback::now() const {
  if (passing_) return Seconds(*passing_);
  if (!playing_ || !index_) return Seconds(at_);
  const double now = at_ + Seconds(Clock::now() - since_).count() * speed_;
  return Seconds(lines_.empty() ? std::max(at_, last_t_) : std::min(now, std::max(at_, lines_.next_time())));
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
  if (!told_ && !lines_.empty() && (first_ || lines_.next_time() <= reached)) {
    told_ = true;
    first_ = false;
    Q_EMIT began();
    if (!alive || !playing_) return;
  }
  while (!lines_.empty() && lines_.next_time() <= reached) {
    passOn(lines_.take(reached));
    if (!alive || !playing_) return;
    // The clock has not gone on meanwhile for who looks at it.
    if (Clock::now() >= until) return timer_.start(0);
  }
  if (lines_.empty()) {
    stop();
    const QString how = lines_.cut_off() ? tr("The recording breaks off here: its last line is not whole.")
                                         : tr("The recording ends here.");
    Q_EMIT over({ErrorCode::kAborted, how.toStdString()});
    return;
  }
  timer_.start(
      static_cast<int>(std::clamp(std::ceil((lines_.next_time() - reached) / speed_ * 1000), 0.0, kLongestWaitMs)));
}

// Who hears a line looks at the clock: it is as late as the line is.
void Playback::passOn(const RecordingReader::Line& line) {
  passing_ = last_t_ = std::max(at_, line.t);
  const QPointer<Playback> alive(this);
  if (line.kind == RecordingReader::Line::Kind::kClosed) {
    at_ = std::max(at_, line.t);
    playing_ = false;
    Q_EMIT over({ErrorCode::kPeerLost, line.text});
  } else {
    Q_EMIT played(QByteArray::fromStdString(line.text));
  }
  if (alive) passing_.reset();
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
