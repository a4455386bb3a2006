// A recording that is played: its clock, the lines as they are due, the answers. One for all streams that are made of
// it one after the other. GUI thread; the file is read through once on a thread of its own.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <thread>

#include <QFile>
#include <QObject>
#include <QTimer>

#include "app/core/recording_index.h"
#include "app/core/recording_reader.h"
#include "net/base/deadline.h"

namespace atl {

class Playback : public QObject {
  Q_OBJECT

 public:
  Playback(QString file, double speed);
  ~Playback() override;

  // Plays from where it stands: `began` follows when the next line is due (in the file's first connection: at once),
  // then lines, then `over` at the end of a connection or of the recording. `player`: who is told from now on.
  void play(const QObject* player);
  void pause(const QObject* player);  // nothing when it is played for another one
  Seconds now() const;                // by the recording; never beyond a line that is still to come
  // The answer to a line that was sent: one line, without newline.
  QByteArray answer(const QByteArray& request);

 Q_SIGNALS:
  void began();
  void played(const QByteArray& line);
  void over(const atl::Error& why);

 private:
  void prepare();
  void take(Result<RecordingIndex> index);
  void turn();
  void passOn(const RecordingReader::Line& line);
  void stop();

  const QString path_;
  const double speed_;
  std::optional<RecordingIndex> index_;
  std::optional<Error> broken_;
  RecordingReader lines_;
  QFile answers_;
  const QObject* player_ = nullptr;
  bool playing_ = false, told_ = false, first_ = true;
  double at_ = 0;                  // the recording's time at since_
  double last_t_ = 0;              // of the line that was passed on last
  std::optional<double> passing_;  // of the line that is being passed on
  Clock::time_point since_{};
  QTimer timer_;
  std::atomic<bool> stop_{false};
  std::jthread reader_;  // last
};

}  // namespace atl
