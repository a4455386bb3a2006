#include "app/gui/join_wizard/gpu_choice.h"

#include <QCheckBox>
#include <QGridLayout>
#include <QLabel>
#include <QLineEdit>

#include "app/config/gpu_list.h"
#include "app/gui/look/format.h"
#include "app/gui/parts/plain_label.h"

namespace atl {
namespace {

constexpr int kColumns = 2, kFirstBoxRow = 2, kFew = 4;

QString name_of(const GpuSample& gpu, std::size_t number) {
  QString name = gpu.name.empty() ? GpuChoice::tr("GPU %1").arg(number)
                                  : GpuChoice::tr("GPU %1: %2").arg(number).arg(QString::fromStdString(gpu.name));
  if (gpu.memory_total_bytes) name += ", " + text::bytes(*gpu.memory_total_bytes);
  return name;
}

}  // namespace

GpuChoice::GpuChoice(QWidget* parent) : QWidget(parent) {
  grid_ = new QGridLayout(this);
  grid_->setContentsMargins(0, 4, 0, 4);
  grid_->setHorizontalSpacing(24);
  grid_->setVerticalSpacing(4);
  grid_->setColumnStretch(kColumns, 1);
  none_ = make_sentence(tr("No GPU was found: this machine trains on its processor."));
  text_ = new QLineEdit("all");
  text_->setObjectName("gpus");
  text_->setAccessibleName(tr("GPUs: all, none, or for instance 0-3,6"));
  text_->setToolTip(text_->accessibleName());
  grid_->addWidget(none_, 0, 0, 1, kColumns + 1);
  grid_->addWidget(text_, 1, 0, 1, kColumns + 1);
  setFocusProxy(text_);
  connect(text_, &QLineEdit::textEdited, this, &GpuChoice::edited);
  setGpus({}, false);
}

void GpuChoice::setGpus(const std::vector<GpuSample>& gpus, bool none) {
  none_->setVisible(gpus.empty() && none);
  text_->setVisible(gpus.empty() && !none);
  if (gpus.size() == boxes_.size()) return;
  const QString chosen = value();
  for (QCheckBox* box : boxes_) box->deleteLater();
  boxes_.clear();
  // Beneath one another, and so few columns that the longest name fits.
  const int count = static_cast<int>(gpus.size());
  const int rows = count <= kFew ? count : (count + kColumns - 1) / kColumns;
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    auto* box = new QCheckBox(name_of(gpus[i], i));
    box->setAccessibleName(box->text());
    grid_->addWidget(box, kFirstBoxRow + static_cast<int>(i) % rows, static_cast<int>(i) / rows);
    boxes_.push_back(box);
    connect(box, &QCheckBox::clicked, this, &GpuChoice::edited);
  }
  if (!boxes_.empty()) setFocusProxy(boxes_.front());
  setValue(chosen);
}

void GpuChoice::setValue(const QString& value) {
  text_->setText(value);
  const auto list = parse_gpu_list(value.toStdString());
  for (std::size_t i = 0; i < boxes_.size(); ++i) {
    boxes_[i]->setChecked(!list.ok() || list->contains(static_cast<unsigned>(i)));
  }
}

QString GpuChoice::value() const {
  if (boxes_.empty()) return text_->text().trimmed();
  GpuList list{.numbers = std::vector<unsigned>()};
  for (std::size_t i = 0; i < boxes_.size(); ++i) {
    if (boxes_[i]->isChecked()) list.numbers->push_back(static_cast<unsigned>(i));
  }
  if (list.numbers->size() == boxes_.size()) return "all";
  return list.numbers->empty() ? QString("none") : QString::fromStdString(list.text());
}

QString GpuChoice::problem() const {
  const auto list = parse_gpu_list(value().toStdString());
  return list.ok() ? QString() : QString::fromStdString(list.error().message);
}

}  // namespace atl
