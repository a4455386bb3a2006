// A run that this machine organises: what `atoll hub` does, for the app. Commands run as child processes; the hub's
// state comes from its control socket. GUI thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <QObject>

#include "app/core/agent_link.h"
#include "app/core/command_run.h"
#include "app/core/paced.h"
#include "net/control/home.h"
#include "net/control/hub_state.h"

namespace atl {

struct RunPlan {  // for `atoll hub init`
  QString name;
  QString operated_by;     // as those see it who are invited; may be empty
  QString text_directory;  // to be prepared; or
  QString data_directory;  // already prepared
  QString preset;          // of the model
  int min_islands = 2;
  int inner_steps = 0;  // 0: the preset's
  QString listen = "0.0.0.0:47000";
  QString advertise;  // empty: this machine's own address
};

struct MadeInvite {
  std::string invite, link;  // secret: shown and copied on demand only
  std::string id;
  double expires = 0;  // seconds since 1970
  unsigned uses = 0;
};

struct ListedIsland {
  std::string id, name;
  HubIslandState state = HubIslandState::kUnknown;
  double enrolled_at = 0;
};

class HubModel : public QObject {
  Q_OBJECT

 public:
  HubModel(HubHome home, OpenStream open, RunCommand run, QObject* parent = nullptr);
  ~HubModel() override;

  bool exists() const;  // a run was created in this home
  void start();         // looks for a hub that serves
  bool serving() const;
  const std::optional<HubState>& state() const { return state_; }  // the last that it said
  const std::vector<ListedIsland>& islands() const { return islands_; }
  bool busy() const { return busy_; }
  const QString& doing() const { return doing_; }          // "Preparing text ...", for a person
  const std::string& problem() const { return problem_; }  // of the last command; empty when it went well

  void create(const RunPlan& plan);  // data prepare, hub init, hub serve
  void serve();                      // a hub that outlives this program
  void stopServing();
  void rollBack(std::uint32_t outer_step);  // of a hub that serves
  void invite(unsigned uses, const QString& expires, std::function<void(const Result<MadeInvite>&)> done);
  void removeIsland(const std::string& id);

 Q_SIGNALS:
  void changed();

 private:
  // What this app keeps beside the hub's own files: how it was served, so that it can be served so again.
  struct Serving {
    QString listen = QStringLiteral("0.0.0.0:47000");
    QString advertise;
  };

  QString path(const char* suffix) const;
  void prepare();
  void init(const QString& data);
  void tell(std::string_view method, const nlohmann::json& parameters);
  void begin(const QString& doing);
  void end(const Error* problem);
  Status keepServing(const Serving& serving) const;
  Serving readServing() const;
  void hubStarted(qint64 pid);
  void watchStart();
  void linkChanged();
  void askState();
  void askIslands();

  const HubHome home_;
  const RunCommand run_;
  AgentLink link_;
  std::optional<HubState> state_;
  std::vector<ListedIsland> islands_;
  RunPlan plan_;
  bool busy_ = false, starting_ = false, asking_ = false;
  QString doing_;
  std::string problem_;
  qint64 hub_pid_ = 0;  // of the one that was started; 0: it is not running yet
  Clock::time_point give_up_at_{};
  QTimer poll_, watch_;
  Paced look_state_, look_islands_;
};

}  // namespace atl
