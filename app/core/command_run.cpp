#include "app/core/command_run.h"

#include <QCoreApplication>
#include <algorithm>

#include "net/base/exit_code.h"
#include "net/base/json_text.h"
#include "net/base/printable.h"

namespace atl {
namespace {

constexpr qsizetype kMaxErrorBytes = 64 * 1024;
constexpr int kMaxOutputDepth = 32;

struct CommandText {
  Q_DECLARE_TR_FUNCTIONS(CommandText)
};

ErrorCode code_of_exit(int exit) {
  switch (exit) {
    case kExitUsage: return ErrorCode::kInvalidArgument;
    case kExitNotRunning: return ErrorCode::kNotRunning;
    case kExitNotJoined: return ErrorCode::kNotJoined;
    case kExitDenied: return ErrorCode::kPermissionDenied;
    case kExitInvite: return ErrorCode::kInviteUnknown;
    case kExitPinMismatch: return ErrorCode::kPinMismatch;
    case kExitHubUnreachable: return ErrorCode::kUnreachable;
    case kExitVersion: return ErrorCode::kVersionUnsupported;
    case kExitTimeout: return ErrorCode::kTimeout;
    case kExitTrainerFailed: return ErrorCode::kTrainerFailed;
    case kExitInterrupted: return ErrorCode::kAborted;
    default: return ErrorCode::kInternal;
  }
}

// The exit status is too coarse for what the system said; the words are those of an `atoll` without a locale.
ErrorCode code_in_words(ErrorCode code, const std::string& words) {
  if (code != ErrorCode::kInternal) return code;
  const auto says = [&words](const char* what) { return words.find(what) != std::string::npos; };
  if (says("No space left on device") || says("Disk quota exceeded")) return ErrorCode::kDiskFull;
  if (says("Permission denied") || says("Read-only file system")) return ErrorCode::kPermissionDenied;
  if (says("No such file or directory")) return ErrorCode::kNotFound;
  return code;
}

// "atoll: ...", "atoll-trainer: ...": the program's own word comes last.
std::string last_words(const QByteArray& errors) {
  const QList<QByteArray> lines = errors.trimmed().split('\n');
  QByteArray line = lines.last().trimmed();
  for (const char* prefix : {"atoll: ", "atoll-trainer: "}) {
    if (line.startsWith(prefix)) line = line.mid(qstrlen(prefix));
  }
  return printable(line.toStdString());
}

// Watches one command to its end; its child, so that both go together.
class CommandWatch final : public QObject {
 public:
  using Done = std::function<void(const Result<CommandOutcome>&)>;

  CommandWatch(std::unique_ptr<CommandRun> command, Done done, std::function<void(const QString&)> progress)
      : command_(std::move(command)), done_(std::move(done)), progress_(std::move(progress)) {
    connect(command_.get(), &CommandRun::output, this, [this](const QByteArray& bytes) {
      const qsizetype room = CommandOutcome::kMaxOutputBytes - outcome_.output.size();
      overflows_ = overflows_ || bytes.size() > room;
      outcome_.output += bytes.left(room);
    });
    connect(command_.get(), &CommandRun::errors, this, [this](const QByteArray& bytes) { takeErrors(bytes); });
    connect(command_.get(), &CommandRun::ended, this, [this](const Result<int>& exit) { finish(exit); });
  }

  void start() { command_->start(); }

 private:
  void takeErrors(const QByteArray& bytes) {
    errors_ = (errors_ + bytes).right(kMaxErrorBytes);
    line_ += bytes;
    for (qsizetype end; (end = line_.indexOf('\n')) >= 0; line_.remove(0, end + 1)) {
      if (progress_) progress_(QString::fromUtf8(line_.left(end).trimmed()));
    }
    line_ = line_.right(kMaxErrorBytes);
  }

  void finish(const Result<int>& exit) {
    deleteLater();
    const Done done = done_;  // it may take this with it
    if (!exit.ok()) return done(exit.error());
    if (overflows_) {
      return done(
          Error{ErrorCode::kProtocol, CommandText::tr("The command printed more than can be taken.").toStdString()});
    }
    outcome_.exit_code = *exit;
    outcome_.error = last_words(errors_);
    const CommandOutcome outcome = std::move(outcome_);
    done(outcome);
  }

  std::unique_ptr<CommandRun> command_;
  const Done done_;
  const std::function<void(const QString&)> progress_;
  CommandOutcome outcome_;
  QByteArray errors_, line_;
  bool overflows_ = false;
};

}  // namespace

Error error_of(const CommandOutcome& outcome) {
  if (!outcome.error.empty()) return {code_in_words(code_of_exit(outcome.exit_code), outcome.error), outcome.error};
  return {
      code_of_exit(outcome.exit_code),
      CommandText::tr("The command ended with status %1 and did not say why.").arg(outcome.exit_code).toStdString()};
}

Result<nlohmann::json> printed_json(const CommandOutcome& outcome) {
  const std::string_view text(outcome.output.constData(), static_cast<std::size_t>(outcome.output.size()));
  auto json = parse_bounded_json(text, CommandOutcome::kMaxOutputBytes, kMaxOutputDepth);
  if (!json.ok()) {
    return Error{
        ErrorCode::kProtocol,
        CommandText::tr("What the command printed cannot be read; it is of another version of Atoll.").toStdString()};
  }
  make_printable(*json);  // it may be another machine's
  return json;
}

void run_to_end(const RunCommand& run, const CommandRequest& request, QObject* context,
                std::function<void(const Result<CommandOutcome>&)> done,
                std::function<void(const QString& line)> progress) {
  auto* watch = new CommandWatch(run(request), std::move(done), std::move(progress));
  watch->setParent(context);
  watch->start();
}

void run_json(const RunCommand& run, const CommandRequest& request, QObject* context,
              std::function<void(const Result<nlohmann::json>&)> done) {
  run_to_end(run, request, context, [done = std::move(done)](const Result<CommandOutcome>& outcome) {
    if (!outcome.ok()) return done(outcome.error());
    if (outcome->exit_code != kExitOk) return done(error_of(*outcome));
    done(printed_json(*outcome));
  });
}

}  // namespace atl
