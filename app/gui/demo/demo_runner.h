// One demo: the command `atoll demo` on this machine, what its hub says meanwhile, and what it came to. Its files are
// in one directory, whose content of before goes when the next demo begins. Owned by the page; GUI thread. Destroying
// it ends the demo.
#pragma once

#include <map>
#include <memory>
#include <optional>

#include <QElapsedTimer>
#include <QObject>
#include <QString>

#include "app/core/command_run.h"
#include "app/core/hub_model.h"

namespace atl {

struct DemoWish {
  int islands = 3;
  int minutes = 5;
  bool kill = false;  // one island in mid-round; a new one joins later
  QString text;       // file to learn from; empty: the usual one
};

// Of `atoll demo --summary`.
struct DemoOutcome {
  unsigned rounds = 0;
  double training_seconds = 0;
  double first_validation_loss = 0, last_validation_loss = 0;  // nats a byte
  double tokens_per_second = 0;
  std::uint64_t tokens = 0, parameters = 0, bytes_sent = 0;
  double bytes_data_parallel_fp32 = 0, compute_utilisation = 0;
  std::optional<bool> outer_hashes_equal;
  QString model_directory, sample;

  static Result<DemoOutcome> from_json(std::string_view text);
};

class DemoRunner : public QObject {
  Q_OBJECT

 public:
  DemoRunner(RunCommand run, QString directory, QObject* parent = nullptr);
  ~DemoRunner() override;

  void start(const DemoWish& wish);
  void stop();
  void takeHub(const HubState& now);  // what its hub says; it is asked for by itself
  bool running() const { return running_; }

  const DemoWish& wish() const { return wish_; }
  double seconds() const;         // since it began to train; 0 before
  const HubState* state() const;  // null before its hub answers
  // Mean loss by round, and validation loss by outer step: all that came, though the hub forgets.
  const std::map<unsigned, double>& losses() const { return losses_; }
  const std::map<unsigned, double>& validations() const { return validations_; }
  const QString& output() const { return output_; }
  const std::optional<DemoOutcome>& outcome() const { return outcome_; }
  const QString& problem() const { return problem_; }  // why it ended without an outcome
  bool wasStopped() const { return stopped_; }         // by the person
  // It was stopped after a round: its model is kept, and asked to write something.
  bool isKeeping() const { return keeping_; }
  const QString& directory() const { return directory_; }

 Q_SIGNALS:
  void changed();
  void outputAdded(const QString& text);
  void ended();

 private:
  void run();
  void lookAtHub();
  void finished(const Result<int>& exit_code);
  void keepModel(const QStringList& islands);
  void askModel();
  void end();

  const RunCommand run_;
  const QString directory_;
  DemoWish wish_;
  bool running_ = false, stopped_ = false, keeping_ = false;
  std::unique_ptr<CommandRun> command_;
  std::unique_ptr<HubModel> hub_;
  QElapsedTimer training_;
  std::map<unsigned, double> losses_, validations_;
  DemoOutcome so_far_;  // as its hub told it, should it not come to its end
  QString output_, errors_, problem_;
  std::optional<DemoOutcome> outcome_;
};

}  // namespace atl
