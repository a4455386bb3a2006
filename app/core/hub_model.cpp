#include "app/core/hub_model.h"

#include <signal.h>

#include <QFile>
#include <algorithm>
#include <cerrno>

#include "app/core/child_leash.h"
#include "net/base/file.h"
#include "net/control/hub_words.h"
#include "net/control/json_fields.h"
#include "net/control/methods.h"
#include "net/control/told.h"
#include "net/wire/invite.h"

namespace atl {
namespace {

constexpr std::chrono::milliseconds kPoll{2000}, kSoon{300}, kIslandsPace{2000}, kLook{250};
constexpr std::chrono::seconds kStartTime{20};
constexpr qint64 kLogTailBytes = 4096;
constexpr std::size_t kMaxIslands = 100'000;

QString flag(const char* name, const QString& value) { return QString("--%1=%2").arg(name, value); }

Result<std::vector<ListedIsland>> islands_from_json(const nlohmann::json& json) {
  JsonFields fields(json, "the list of islands");
  const nlohmann::json* list = fields.array("islands", kMaxIslands);
  ATOLL_RETURN_IF_ERROR(fields.status());
  std::vector<ListedIsland> islands;
  for (const nlohmann::json& one : *list) {
    ListedIsland& island = islands.emplace_back();
    JsonFields read(one, "an island");
    std::string state;
    read.read("island", island.id).read("name", island.name).read("state", state);
    island.state = parse_word<HubIslandState>(state);
    ATOLL_RETURN_IF_ERROR(read.read("enrolled_at", island.enrolled_at).status());
  }
  return islands;
}

Result<MadeInvite> invite_from_json(const nlohmann::json& json) {
  MadeInvite made;
  JsonFields fields(json, "the invite");
  fields.read("invite", made.invite).read("id", made.id).read("uses", made.uses);
  ATOLL_RETURN_IF_ERROR(fields.read("expires_unix_seconds", made.expires).status());
  made.link = invite_link(made.invite);
  return made;
}

// The last thing that a hub wrote before it ended.
QString last_line(const QString& path) {
  QFile file(path);
  if (!file.open(QIODevice::ReadOnly)) return {};
  file.seek(std::max<qint64>(0, file.size() - kLogTailBytes));
  const QList<QByteArray> lines = file.readAll().trimmed().split('\n');
  const QString line = QString::fromUtf8(lines.last().trimmed());
  return line.startsWith("atoll: ") ? line.mid(7) : line;
}

}  // namespace

HubModel::HubModel(HubHome home, OpenStream open, RunCommand run, QObject* parent)
    : QObject(parent),
      home_(std::move(home)),
      run_(std::move(run)),
      link_(std::move(open)),
      look_state_([this] { askState(); }, kSoon),
      look_islands_([this] { askIslands(); }, kIslandsPace) {
  connect(&link_, &AgentLink::stateChanged, this, &HubModel::linkChanged);
  connect(&link_, &AgentLink::mustReload, this, [this] {
    look_state_.request();
    look_islands_.request();
  });
  connect(&link_, &AgentLink::eventReceived, this, [this](const LinkEvent& event) {
    if (event.kept) return;
    look_state_.request();
    if (is_about_islands(event.name)) look_islands_.request();
  });
  poll_.setInterval(kPoll);
  connect(&poll_, &QTimer::timeout, this, [this] {
    if (serving()) askState();
  });
  watch_.setInterval(kLook);
  connect(&watch_, &QTimer::timeout, this, &HubModel::watchStart);
}

HubModel::~HubModel() = default;

QString HubModel::path(const char* name) const { return QString::fromStdString((home_.directory / name).string()); }

bool HubModel::exists() const {
  std::error_code ignored;
  return std::filesystem::exists(home_.run_file(), ignored);
}

bool HubModel::serving() const { return link_.state() == LinkState::kConnected; }

void HubModel::start() {
  link_.start();
  poll_.start();
  if (exists()) look_islands_.request();
}

// ---- what the hub says

void HubModel::linkChanged() {
  asking_ = false;
  if (serving() && starting_) {
    end(nullptr);
  } else {
    Q_EMIT changed();
  }
}

void HubModel::askState() {
  if (asking_ || !serving()) return;
  asking_ = true;
  link_.call(method::StateGet::kName, nlohmann::json::object(), this, [this](const auto& answer) {
    asking_ = false;
    if (!answer.ok()) return;
    auto state = HubState::from_json(*answer);
    if (!state.ok()) return;
    state_ = std::move(*state);
    Q_EMIT changed();
  });
}

void HubModel::askIslands() {
  if (!exists()) return;
  const QString home = QString::fromStdString(home_.directory.string());
  run_json(run_, {.arguments = {"hub", "islands", flag("home", home), "--json"}}, this, [this](const auto& answer) {
    auto islands = answer.ok() ? islands_from_json(*answer) : Result<std::vector<ListedIsland>>(answer.error());
    if (!islands.ok()) return;
    islands_ = std::move(*islands);
    Q_EMIT changed();
  });
}

// ---- creating a run

void HubModel::begin(const QString& doing) {
  busy_ = true;
  doing_ = doing;
  problem_.clear();
  Q_EMIT changed();
}

void HubModel::end(const Error* problem) {
  busy_ = starting_ = false;
  watch_.stop();
  doing_.clear();
  problem_ = problem != nullptr ? problem->message : std::string();
  Q_EMIT changed();
}

void HubModel::create(const RunPlan& plan) {
  if (busy_) return;
  plan_ = plan;
  if (exists()) {
    const Error problem{ErrorCode::kInvalidArgument,
                        tr("There is a run in %1 already. Choose another directory, or serve that one.")
                            .arg(QString::fromStdString(home_.directory.string()))
                            .toStdString()};
    return end(&problem);
  }
  if (plan.text_directory.isEmpty()) return init(plan.data_directory);
  prepare();
}

void HubModel::prepare() {
  begin(tr("Preparing the text: cutting it into tokens ..."));
  // Beside the home, which is made only when there is a dataset.
  const QString data = QString::fromStdString(home_.directory.string() + "-data");
  const QStringList arguments{"data", "prepare", plan_.text_directory, flag("output", data), "--force"};
  run_to_end(run_, {.arguments = arguments}, this, [this, data](const auto& outcome) {
    if (outcome.ok() && outcome->exit_code == 0) return init(data);
    const Error problem = outcome.ok() ? error_of(*outcome) : outcome.error();
    end(&problem);
  });
}

void HubModel::init(const QString& data) {
  begin(tr("Creating the run: its model, its keys ..."));
  QStringList arguments{"hub",
                        "init",
                        flag("home", QString::fromStdString(home_.directory.string())),
                        flag("data", data),
                        flag("name", plan_.name),
                        flag("islands", QString::number(std::max(1, plan_.min_islands)))};
  if (!plan_.operated_by.isEmpty()) arguments << flag("operator", plan_.operated_by);
  if (!plan_.preset.isEmpty()) arguments << flag("preset", plan_.preset);
  if (plan_.inner_steps > 0) arguments << flag("inner-steps", QString::number(plan_.inner_steps));
  run_to_end(run_, {.arguments = arguments}, this, [this](const auto& outcome) {
    if (!outcome.ok() || outcome->exit_code != 0) {
      const Error problem = outcome.ok() ? error_of(*outcome) : outcome.error();
      return end(&problem);
    }
    const Status kept = keepServing({.listen = plan_.listen, .advertise = plan_.advertise});
    if (!kept.ok()) return end(&kept.error());
    busy_ = false;
    serve();
  });
}

// ---- serving

Status HubModel::keepServing(const Serving& serving) const {
  const nlohmann::json json = {{"listen", serving.listen.toStdString()},
                               {"advertise", serving.advertise.toStdString()}};
  return write_file_atomically(path("app-serve.json").toStdString(), json.dump(1) + "\n", FileMode::kPrivate);
}

HubModel::Serving HubModel::readServing() const {
  QFile file(path("app-serve.json"));
  if (!file.open(QIODevice::ReadOnly)) return {};
  const auto json = parse_control_json(file.read(kLogTailBytes).toStdString());
  const auto text = [&](const char* key) {
    return json.ok() ? QString::fromStdString(told::text(*json, key)) : QString();
  };
  Serving serving;
  if (!text("listen").isEmpty()) serving.listen = text("listen");
  serving.advertise = text("advertise");
  return serving;
}

void HubModel::serve() {
  if (busy_ || serving()) return;
  begin(tr("Starting the hub ..."));
  const Serving serving = readServing();
  QStringList arguments{"hub", "serve", flag("home", QString::fromStdString(home_.directory.string())),
                        flag("listen", serving.listen)};
  if (!serving.advertise.isEmpty()) arguments << flag("advertise", serving.advertise);
  QFile::remove(path("hub.log"));  // what it says is of this start
  hub_pid_ = 0;
  starting_ = true;
  leave_atoll_running(arguments, path("hub.log"), this, [this](qint64 pid) { hubStarted(pid); });
}

void HubModel::hubStarted(qint64 pid) {
  if (!starting_) return;  // one that serves was found meanwhile
  if (pid == 0) {
    const Error problem{
        ErrorCode::kNotFound,
        tr("The hub cannot be started: %1 cannot be run. Install Atoll's command line beside this program.")
            .arg(atoll_program())
            .toStdString()};
    return end(&problem);
  }
  hub_pid_ = pid;
  give_up_at_ = Clock::now() + kStartTime;
  watch_.start();
  link_.reconnect();
}

// Until it answers; one that has ended will not.
void HubModel::watchStart() {
  const bool ended = ::kill(static_cast<pid_t>(hub_pid_), 0) != 0 && errno == ESRCH;
  if (!starting_ || (!ended && Clock::now() < give_up_at_)) return;
  const QString said = last_line(path("hub.log"));
  const Error problem{ErrorCode::kTimeout, said.isEmpty() ? tr("The hub was started but does not answer.").toStdString()
                                                          : tr("The hub does not serve: %1").arg(said).toStdString()};
  end(&problem);
}

void HubModel::tell(std::string_view method, const nlohmann::json& parameters) {
  link_.call(method, parameters, this, [this](const auto& answer) {
    problem_ = answer.ok() ? std::string() : answer.error().message;
    Q_EMIT changed();
  });
}

void HubModel::stopServing() { tell(method::Stop::kName, nlohmann::json::object()); }

void HubModel::rollBack(std::uint32_t outer_step) {
  tell(method::RunRollback::kName, encode_message(method::RunRollback{outer_step}));
}

// ---- islands

void HubModel::invite(unsigned uses, const QString& expires, std::function<void(const Result<MadeInvite>&)> done) {
  const QString home = QString::fromStdString(home_.directory.string());
  const QStringList arguments{
      "hub", "invite", flag("home", home), flag("uses", QString::number(uses)), flag("expires", expires), "--json"};
  run_json(run_, {.arguments = arguments}, this, [done = std::move(done)](const auto& answer) {
    done(answer.ok() ? invite_from_json(*answer) : Result<MadeInvite>(answer.error()));
  });
}

void HubModel::removeIsland(const std::string& id) {
  if (busy_) return;
  begin(tr("Removing the island ..."));
  const QString home = QString::fromStdString(home_.directory.string());
  const QStringList arguments{"hub", "remove", flag("home", home), QString::fromStdString(id)};
  run_to_end(run_, {.arguments = arguments}, this, [this](const auto& outcome) {
    const bool good = outcome.ok() && outcome->exit_code == 0;
    const Error problem = outcome.ok() && !good ? error_of(*outcome) : outcome.ok() ? Error{} : outcome.error();
    end(good ? nullptr : &problem);
    look_islands_.request();
    look_state_.request();
  });
}

}  // namespace atl
