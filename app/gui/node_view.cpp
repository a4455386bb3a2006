#include "app/gui/node_view.h"

#include <QStackedWidget>
#include <QVBoxLayout>

#include "app/core/node.h"
#include "app/gui/check_page.h"
#include "app/gui/checkpoints_page.h"
#include "app/gui/first_start.h"
#include "app/gui/gpus_page.h"
#include "app/gui/logs_page.h"
#include "app/gui/node_header.h"
#include "app/gui/overview_page.h"
#include "app/gui/parts/empty_state.h"
#include "app/gui/parts/roomy_scroll.h"
#include "app/gui/settings_page.h"
#include "app/gui/sync_page.h"
#include "app/gui/training_page.h"
#include "app/gui/unreached_view.h"

namespace atl {
namespace {

template <class T>
QWidget* make(Node& node) {
  return new T(node);
}

// Nobody joined a run with this machine's account: asked of the disk, for no agent may run yet.
bool never_joined(const Node& node) {
  const auto* local = std::get_if<LocalNode>(&node.address());
  if (local == nullptr) return false;
  std::error_code error;
  return !std::filesystem::exists(local->home.island.join_file(), error);
}

// Pages that are of use before anything was joined.
bool is_of_the_machine(PageId page) {
  return page == PageId::kCheck || page == PageId::kLogs || page == PageId::kSettings;
}

}  // namespace

const std::vector<PageSpec>& page_list() {
  static const std::vector<PageSpec> list{
      {PageId::kOverview, "overview", "overview", NodeView::tr("Overview"), make<OverviewPage>},
      {PageId::kTraining, "training", "training", NodeView::tr("Training"), make<TrainingPage>},
      {PageId::kSync, "sync", "sync", NodeView::tr("Sync"), make<SyncPage>},
      {PageId::kGpus, "gpus", "gpu", NodeView::tr("GPUs"), make<GpusPage>},
      {PageId::kCheckpoints, "checkpoints", "checkpoints", NodeView::tr("Checkpoints"), make<CheckpointsPage>},
      {PageId::kCheck, "check", "check", NodeView::tr("Check"), make<CheckPage>},
      {PageId::kLogs, "logs", "logs", NodeView::tr("Logs"), make<LogsPage>},
      {PageId::kSettings, "settings", "settings", NodeView::tr("Settings"), make<SettingsPage>},
  };
  return list;
}

NodeView::NodeView(Node& node, QWidget* parent)
    : QWidget(parent),
      node_(node),
      header_(new NodeHeader(node)),
      stack_(new QStackedWidget),
      first_start_(new FirstStart(node)),
      unreached_(new UnreachedView(node)),
      loading_(new EmptyState) {
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  column->addWidget(header_);
  column->addWidget(stack_, 1);
  for (QWidget* one : std::initializer_list<QWidget*>{first_start_, unreached_, loading_}) {
    stack_->addWidget(new RoomyScroll(one));
  }
  connect(header_, &NodeHeader::logsWanted, this, [this] { Q_EMIT pageWanted(PageId::kLogs); });
  connect(header_, &NodeHeader::joinWanted, this, &NodeView::joinWanted);
  connect(first_start_, &FirstStart::joinWanted, this, &NodeView::joinWanted);
  connect(first_start_, &FirstStart::hostWanted, this, &NodeView::hostWanted);
  connect(first_start_, &FirstStart::demoWanted, this, &NodeView::demoWanted);
  connect(unreached_, &UnreachedView::startWanted, header_, &NodeHeader::startAgent);
  connect(unreached_, &UnreachedView::retryWanted, this, [this] { node_.link().reconnect(); });
  connect(&node_, &Node::changed, this, &NodeView::refresh);
  refresh();
}

void NodeView::showPage(PageId page) {
  page_ = page;
  refresh();
}

QWidget* NodeView::pageWidget() const {
  return shown_ == first_start_ || shown_ == unreached_ || shown_ == loading_ ? nullptr : shown_;
}

bool NodeView::showsFirstStart() const { return shown_ == first_start_; }

QWidget* NodeView::made(PageId page) {
  QWidget*& widget = pages_[page];
  if (widget != nullptr) return widget;
  for (const PageSpec& spec : page_list()) {
    if (spec.id != page) continue;
    widget = spec.make(node_);
    widget->setObjectName(QString("%1_page").arg(spec.name));
    widget->setAccessibleName(spec.title);
    if (auto* own = qobject_cast<Page*>(widget)) connect(own, &Page::pageWanted, this, &NodeView::pageWanted);
  }
  if (auto* check = qobject_cast<CheckPage*>(widget)) {
    connect(check, &CheckPage::startWanted, header_, &NodeHeader::startAgent);
  }
  if (auto* settings = qobject_cast<SettingsPage*>(widget)) {
    connect(settings, &SettingsPage::startWanted, header_, &NodeHeader::startAgent);
  }
  stack_->addWidget(new RoomyScroll(widget));
  return widget;
}

void NodeView::refresh() {
  const auto& state = node_.state();
  const bool unjoined = state ? !state->joined() : node_.link().state() == LinkState::kNoAgent && never_joined(node_);
  header_->setPageShowsRound(page_ == PageId::kOverview);
  header_->setVisible(!unjoined || is_of_the_machine(page_) || state.has_value());
  QWidget* shown = is_of_the_machine(page_) || (state && !unjoined) ? made(page_)
                   : unjoined                                       ? first_start_
                                                                    : withoutState();
  // Check and Settings offer to start a missing agent themselves.
  const bool offers = page_ == PageId::kCheck || page_ == PageId::kSettings;
  const bool agent_missing = node_.link().state() == LinkState::kNoAgent;
  header_->setPageShowsAdvice(shown == unreached_ || (offers && agent_missing));
  shown_ = shown;
  stack_->setCurrentWidget(held(shown));
}

QWidget* NodeView::held(QWidget* page) {
  for (int i = 0; i < stack_->count(); ++i) {
    if (qobject_cast<RoomyScroll*>(stack_->widget(i))->widget() == page) return stack_->widget(i);
  }
  return nullptr;
}

// Nothing is known of the machine yet.
QWidget* NodeView::withoutState() {
  const LinkState link = node_.link().state();
  if (link != LinkState::kConnecting && link != LinkState::kConnected) {
    unreached_->refresh();
    return unreached_;
  }
  loading_->say(text::state_word(node_).icon, tr("Asking the agent of %1\u2026").arg(label(node_.address())), {});
  return loading_;
}

}  // namespace atl
