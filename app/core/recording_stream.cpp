// A recording as a conversation.
#include "app/core/line_stream.h"
#include "app/core/playback.h"
#include "app/core/streams.h"

namespace atl {
namespace {

class RecordingStream final : public LineStream {
 public:
  explicit RecordingStream(std::shared_ptr<Playback> playback) : playback_(std::move(playback)) {}
  ~RecordingStream() override {
    playback_->disconnect(this);
    playback_->pause(this);
  }

  void open() override {
    open_ = true;
    connect(playback_.get(), &Playback::began, this, [this] { Q_EMIT opened(); });
    connect(playback_.get(), &Playback::played, this, [this](const QByteArray& line) { Q_EMIT received(line); });
    connect(playback_.get(), &Playback::over, this, [this](const Error& why) {
      open_ = false;
      Q_EMIT closed(why);
    });
    playback_->play(this);
  }

  void send(const QByteArray& line) override {
    if (!open_) return;
    QMetaObject::invokeMethod(
        this,
        [this, line] {
          if (open_) Q_EMIT received(playback_->answer(line));
        },
        Qt::QueuedConnection);
  }

  Seconds now() const override { return playback_->now(); }

 private:
  const std::shared_ptr<Playback> playback_;
  bool open_ = false;
};

}  // namespace

OpenStream open_recording(const QString& file, double speed) {
  const auto playback = std::make_shared<Playback>(file, speed);
  return [playback] { return std::make_unique<RecordingStream>(playback); };
}

}  // namespace atl
