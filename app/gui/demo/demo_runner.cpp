#include "app/gui/demo/demo_runner.h"

#include <algorithm>

#include <QCoreApplication>
#include <QDir>
#include <QFile>
#include <QPointer>
#include <QThreadPool>

#include "app/core/streams.h"
#include "net/base/exit_code.h"
#include "net/base/json_reader.h"
#include "net/base/printable.h"

namespace atl {
namespace {

constexpr qint64 kMaxSummaryBytes = 1 << 20;
constexpr qsizetype kMaxOutput = 256 * 1024;

constexpr int kMaxSummaryDepth = 8;
// Of a demo that was stopped; the command asks alike at its end.
constexpr const char* kPrompt = "An atoll is ";
constexpr const char* kTokens = "200";

// What is missing, or not known, stays as it is.
template <class T>
void read_known(JsonReader& summary, const char* key, T& value) {
  if (summary.has_value(key)) summary.field(key, value);
}

void read_known(JsonReader& summary, const char* key, QString& value) {
  std::string text;
  if (summary.has_value(key)) summary.bounded(key, text, kMaxSummaryBytes);
  value = QString::fromStdString(text);
}

}  // namespace

Result<DemoOutcome> DemoOutcome::from_json(std::string_view summary) {
  const auto json = parse_bounded_json(summary, kMaxSummaryBytes, kMaxSummaryDepth);
  if (!json.ok()) return json.error().with_context("the demo's summary");
  JsonReader reader(*json);
  DemoOutcome outcome;
  read_known(reader, "rounds", outcome.rounds);
  read_known(reader, "training_seconds", outcome.training_seconds);
  read_known(reader, "first_validation_loss", outcome.first_validation_loss);
  read_known(reader, "last_validation_loss", outcome.last_validation_loss);
  read_known(reader, "tokens_per_second", outcome.tokens_per_second);
  read_known(reader, "tokens", outcome.tokens);
  read_known(reader, "parameters", outcome.parameters);
  read_known(reader, "bytes_sent", outcome.bytes_sent);
  read_known(reader, "bytes_data_parallel_fp32", outcome.bytes_data_parallel_fp32);
  read_known(reader, "compute_utilisation", outcome.compute_utilisation);
  read_known(reader, "outer_hashes_equal", outcome.outer_hashes_equal);
  read_known(reader, "export_dir", outcome.model_directory);
  read_known(reader, "sample", outcome.sample);
  if (!reader.status().ok()) return reader.status().error().with_context("the demo's summary");
  return outcome;
}

DemoRunner::DemoRunner(RunCommand run, QString directory, QObject* parent)
    : QObject(parent), run_(std::move(run)), directory_(std::move(directory)) {}

DemoRunner::~DemoRunner() = default;

void DemoRunner::start(const DemoWish& wish) {
  if (running_) return;
  wish_ = wish;
  running_ = true;
  stopped_ = false;
  losses_.clear();
  validations_.clear();
  output_.clear();
  errors_.clear();
  problem_.clear();
  outcome_.reset();
  so_far_ = {};
  training_.invalidate();
  const QPointer<DemoRunner> self(this);
  // A model of before may be large, and the disk slow.
  QThreadPool::globalInstance()->start([self, directory = directory_] {
    QDir(directory).removeRecursively();
    QDir().mkpath(directory);
    QMetaObject::invokeMethod(
        QCoreApplication::instance(),
        [self] {
          if (self) self->run();
        },
        Qt::QueuedConnection);
  });
  Q_EMIT changed();
}

void DemoRunner::run() {
  if (stopped_) {
    finished(kExitInterrupted);
    return;
  }
  QStringList arguments{
      "demo",     "--islands", QString::number(wish_.islands), "--minutes", QString::number(wish_.minutes), "--dir",
      directory_, "--summary", directory_ + "/summary.json"};
  if (wish_.kill) arguments << "--kill";
  if (!wish_.text.isEmpty()) arguments << "--text" << wish_.text;
  command_ = run_({arguments, {}});
  const auto add = [this](const QByteArray& bytes) {
    const QString said = QString::fromUtf8(bytes);
    if (output_.size() < kMaxOutput) output_ += said;
    Q_EMIT outputAdded(said);
  };
  connect(command_.get(), &CommandRun::output, this, add);
  connect(command_.get(), &CommandRun::errors, this, [this, add](const QByteArray& bytes) {
    if (errors_.size() < kMaxOutput) errors_ += QString::fromUtf8(bytes);
    add(bytes);
  });
  connect(command_.get(), &CommandRun::ended, this, &DemoRunner::finished);
  const HubHome home{(directory_ + "/hub").toStdString()};
  hub_ = std::make_unique<HubModel>(home, open_hub(home), run_);
  connect(hub_.get(), &HubModel::changed, this, &DemoRunner::lookAtHub);
  hub_->start();
  command_->start();
}

void DemoRunner::stop() {
  if (!running_ || stopped_) return;
  stopped_ = true;
  if (command_) command_->interrupt();
  Q_EMIT changed();
}

double DemoRunner::seconds() const {
  return training_.isValid() ? static_cast<double>(training_.elapsed()) / 1000.0 : 0;
}

const HubState* DemoRunner::state() const { return hub_ && hub_->state() ? &*hub_->state() : nullptr; }

void DemoRunner::lookAtHub() {
  if (const HubState* now = state()) takeHub(*now);
  Q_EMIT changed();
}

void DemoRunner::takeHub(const HubState& now) {
  if (!training_.isValid() && now.round_open && now.phase != HubPhase::kWaiting) training_.start();
  for (const HubState::Round& round : now.rounds) losses_[round.round + 1] = round.mean_loss_nats;
  for (const auto& validation : {now.first_validation, now.last_validation}) {
    if (validation) validations_[validation->outer_step] = validation->loss_nats;
  }
  so_far_.rounds = now.outer_step;
  so_far_.training_seconds = seconds();
  if (now.first_validation) so_far_.first_validation_loss = now.first_validation->loss_nats;
  if (now.last_validation) so_far_.last_validation_loss = now.last_validation->loss_nats;
  std::uint64_t sent = 0, tokens = 0;
  for (const HubState::Island& island : now.islands) sent += island.bytes_sent;
  for (const HubState::Island& island : now.islands) tokens += island.tokens;
  so_far_.bytes_sent = std::max(so_far_.bytes_sent, sent);
  so_far_.tokens = std::max(so_far_.tokens, tokens);
}

void DemoRunner::finished(const Result<int>& exit_code) {
  if (command_) command_.release()->deleteLater();  // this may be called from within its signal
  if (hub_) hub_.release()->deleteLater();
  if (!exit_code.ok()) {
    problem_ = QString::fromStdString(exit_code.error().message);
  } else if (*exit_code == kExitOk) {
    QFile file(directory_ + "/summary.json");
    const QByteArray summary = file.open(QIODevice::ReadOnly) ? file.read(kMaxSummaryBytes) : QByteArray();
    auto outcome = DemoOutcome::from_json({summary.constData(), static_cast<std::size_t>(summary.size())});
    if (outcome.ok()) outcome_ = std::move(*outcome);
    if (!outcome.ok()) problem_ = QString::fromStdString(outcome.error().message);
  } else {
    problem_ = errors_.trimmed();
  }
  if (stopped_ && so_far_.rounds > 0) {
    keeping_ = true;
    Q_EMIT changed();
    return keepModel(QDir(directory_ + "/islands").entryList(QDir::Dirs | QDir::NoDotAndDotDot));
  }
  end();
}

// What a demo that comes to its end does itself: the model of the first island whose disk gives it.
void DemoRunner::keepModel(const QStringList& islands) {
  if (islands.isEmpty()) {
    outcome_ = so_far_;
    return end();
  }
  const QString model = directory_ + "/model";
  const QStringList arguments{"export",   "--home", directory_ + "/islands/" + islands.front(),
                              "--output", model,    "--force"};
  run_to_end(run_, {arguments, {}}, this, [this, islands, model](const Result<CommandOutcome>& outcome) {
    if (!outcome.ok() || outcome->exit_code != kExitOk) return keepModel(islands.mid(1));
    so_far_.model_directory = model;
    askModel();
  });
}

void DemoRunner::askModel() {
  const QStringList arguments{"sample",   "--model", so_far_.model_directory, "--prompt", kPrompt,
                              "--tokens", kTokens,   "--temperature",         "0.7",      "--device",
                              "processor"};
  run_to_end(run_, {arguments, {}}, this, [this](const Result<CommandOutcome>& outcome) {
    if (outcome.ok() && outcome->exit_code == kExitOk) {
      so_far_.sample = QString::fromStdString(printable_lines(outcome->output.toStdString())).trimmed();
    }
    outcome_ = so_far_;
    end();
  });
}

void DemoRunner::end() {
  running_ = keeping_ = false;
  Q_EMIT changed();
  Q_EMIT ended();
}

}  // namespace atl
