// An `atoll` command, run on the node's machine: a child process here, `command.run` through ssh elsewhere. Destroying
// it interrupts the command. GUI thread; nothing blocks.
#pragma once

#include <functional>
#include <memory>

#include <QByteArray>
#include <QObject>
#include <QStringList>
#include <nlohmann/json.hpp>

#include "app/core/node_address.h"
#include "net/base/result.h"

namespace atl {

class CommandRun : public QObject {
  Q_OBJECT

 public:
  using QObject::QObject;
  virtual void start() = 0;      // once; `ended` follows, never from within this call
  virtual void interrupt() = 0;  // SIGINT

 Q_SIGNALS:
  void output(const QByteArray& bytes);
  void errors(const QByteArray& bytes);
  // Last. The exit status (net/base/exit_code.h), or why it could not be run.
  void ended(const atl::Result<int>& exit_code);
};

struct CommandRequest {
  QStringList arguments;  // after "atoll"; no secrets
  QByteArray input = {};  // what it reads: secrets go here
};

using RunCommand = std::function<std::unique_ptr<CommandRun>(const CommandRequest& request)>;
// Of a recording every command fails and says so. `program`: atoll of this machine; empty: beside this program, then
// on the PATH.
RunCommand make_run_command(const NodeAddress& address, const QString& program = {});

// What a command that has run to its end came to.
struct CommandOutcome {
  int exit_code = 0;
  QByteArray output;  // at most kMaxOutputBytes
  std::string error;  // the last line of its errors, without "atoll: "
  static constexpr qsizetype kMaxOutputBytes = 16 << 20;
};
// The error of an outcome whose exit code is not 0, with the code that the exit stands for.
Error error_of(const CommandOutcome& outcome);

// What it printed, as JSON within bounds, its texts made printable.
Result<nlohmann::json> printed_json(const CommandOutcome& outcome);

// Runs to the end, then calls `done` once, unless `context` (not null) is gone by then: the command is interrupted with
// it. `progress`: each line of its errors, as it comes; may be empty.
void run_to_end(const RunCommand& run, const CommandRequest& request, QObject* context,
                std::function<void(const Result<CommandOutcome>&)> done,
                std::function<void(const QString& line)> progress = {});

// Runs to the end, then one of both: standard output as JSON with exit code 0; or the error that the command printed,
// with the code that its exit stands for.
void run_json(const RunCommand& run, const CommandRequest& request, QObject* context,
              std::function<void(const Result<nlohmann::json>&)> done);

}  // namespace atl
