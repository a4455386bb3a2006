#include "app/gui/setting_editor.h"

#include <sstream>

#include <QComboBox>
#include <QDoubleSpinBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QLocale>
#include <QRegularExpression>
#include <QSignalBlocker>
#include <QSpinBox>
#include <QTimeEdit>

namespace atl {
namespace {

QHBoxLayout* make_row(QWidget* editor) {
  auto* row = new QHBoxLayout(editor);
  row->setContentsMargins(0, 0, 0, 0);
  row->setSpacing(6);
  return row;
}

class TextEditor final : public SettingEditor {
 public:
  explicit TextEditor(QWidget* parent) : SettingEditor(parent), line_(new QLineEdit) {
    make_row(this)->addWidget(line_);
    setFocusProxy(line_);
    connect(line_, &QLineEdit::textEdited, this, &SettingEditor::edited);
  }
  QString value() const override { return line_->text().trimmed(); }
  void setValue(const QString& value) override { line_->setText(value); }
  void nameAfter(const QString& title) override { line_->setAccessibleName(title); }

 private:
  QLineEdit* line_;
};

class WholeEditor final : public SettingEditor {
 public:
  WholeEditor(const ConfigKey& key, QWidget* parent) : SettingEditor(parent), box_(new QSpinBox) {
    auto* row = make_row(this);
    row->addWidget(box_);
    row->addStretch(1);
    setFocusProxy(box_);
    box_->setRange(static_cast<int>(key.low), static_cast<int>(key.high));
    connect(box_, &QSpinBox::valueChanged, this, &SettingEditor::edited);
  }
  QString value() const override { return QString::number(box_->value()); }
  void setValue(const QString& value) override {
    const QSignalBlocker quiet(box_);
    box_->setValue(value.toInt());
  }
  void nameAfter(const QString& title) override { box_->setAccessibleName(title); }

 private:
  QSpinBox* box_;
};

class WordEditor final : public SettingEditor {
 public:
  WordEditor(const ConfigKey& key, QWidget* parent) : SettingEditor(parent), box_(new QComboBox) {
    auto* row = make_row(this);
    row->addWidget(box_);
    row->addStretch(1);
    setFocusProxy(box_);
    std::istringstream words{key.words};
    for (std::string word; words >> word;) box_->addItem(QString::fromStdString(word));
    connect(box_, &QComboBox::activated, this, &SettingEditor::edited);
  }
  QString value() const override { return box_->currentText(); }
  void setValue(const QString& value) override {
    if (box_->findText(value) < 0) box_->addItem(value);  // of a newer agent
    box_->setCurrentText(value);
  }
  void nameAfter(const QString& title) override { box_->setAccessibleName(title); }

 private:
  QComboBox* box_;
};

// Without the zeros that nobody typed.
class NumberBox final : public QDoubleSpinBox {
 public:
  using QDoubleSpinBox::QDoubleSpinBox;
  QString textFromValue(double value) const override {
    return QLocale().toString(value, 'f', QLocale::FloatingPointShortest);
  }
};

// A number and its unit; for rates one of the units is "no limit".
class QuantityEditor final : public SettingEditor {
 public:
  QuantityEditor(const QStringList& units, bool whole, const QString& between, bool may_be_none, QWidget* parent)
      : SettingEditor(parent), between_(between), number_(new NumberBox), unit_(new QComboBox) {
    auto* row = make_row(this);
    row->addWidget(number_);
    row->addWidget(unit_);
    row->addStretch(1);
    setFocusProxy(may_be_none ? static_cast<QWidget*>(unit_) : number_);
    number_->setRange(0, 1'000'000);
    number_->setDecimals(whole ? 0 : 3);
    if (may_be_none) unit_->addItem(SettingEditor::tr("no limit"), "none");
    for (const QString& unit : units) unit_->addItem(shown(unit), unit);
    connect(number_, &QDoubleSpinBox::valueChanged, this, &SettingEditor::edited);
    connect(unit_, &QComboBox::activated, this, [this] {
      refresh();
      Q_EMIT edited();
    });
    refresh();
  }
  QString value() const override {
    if (isNone()) return "none";
    return QLocale::c().toString(number_->value(), 'f', QLocale::FloatingPointShortest) + between_ +
           unit_->currentData().toString();
  }
  void setValue(const QString& value) override {
    const QSignalBlocker quiet(number_);
    static const QRegularExpression kForm(R"(^([0-9.]+)\s*(\S+)$)");
    const auto match = kForm.match(value);
    const QString unit = match.hasMatch() ? match.captured(2) : value;
    if (unit_->findData(unit) < 0) unit_->addItem(unit, unit);
    unit_->setCurrentIndex(unit_->findData(unit));
    number_->setValue(match.hasMatch() ? QLocale::c().toDouble(match.captured(1)) : 0);
    refresh();
  }
  void nameAfter(const QString& title) override {
    number_->setAccessibleName(title);
    unit_->setAccessibleName(SettingEditor::tr("%1: unit").arg(title));
  }

 private:
  static QString shown(const QString& unit) {
    if (unit == "s") return SettingEditor::tr("seconds");
    if (unit == "m") return SettingEditor::tr("minutes");
    if (unit == "h") return SettingEditor::tr("hours");
    if (unit == "d") return SettingEditor::tr("days");
    return unit;
  }
  bool isNone() const { return unit_->currentData().toString() == "none"; }
  void refresh() { number_->setVisible(!isNone()); }

  const QString between_;
  NumberBox* number_;
  QComboBox* unit_;
};

// Always, from one time of the day to another, or whatever else can be written.
class HoursEditor final : public SettingEditor {
 public:
  explicit HoursEditor(QWidget* parent)
      : SettingEditor(parent),
        kind_(new QComboBox),
        from_(new QTimeEdit(QTime(22, 0))),
        dash_(new QLabel(QString::fromUtf8("\u2013"))),
        to_(new QTimeEdit(QTime(6, 0))),
        text_(new QLineEdit) {
    auto* row = make_row(this);
    kind_->addItems(
        {SettingEditor::tr("always"), SettingEditor::tr("daily"), SettingEditor::tr("several times a day")});
    for (QWidget* part : std::initializer_list<QWidget*>{kind_, from_, dash_, to_}) row->addWidget(part);
    row->addWidget(text_, 1);
    row->addStretch(0);
    setFocusProxy(kind_);
    text_->setPlaceholderText("22:00-06:00, 12:00-13:00");
    for (QTimeEdit* time : {from_, to_}) {
      time->setDisplayFormat("HH:mm");
      connect(time, &QTimeEdit::timeChanged, this, &SettingEditor::edited);
    }
    connect(text_, &QLineEdit::textEdited, this, &SettingEditor::edited);
    connect(kind_, &QComboBox::activated, this, [this] {
      refresh();
      Q_EMIT edited();
    });
    refresh();
  }
  QString value() const override {
    if (kind_->currentIndex() == kAlways) return {};
    if (kind_->currentIndex() == kSeveral) return text_->text().trimmed();
    return from_->time().toString("HH:mm") + "-" + to_->time().toString("HH:mm");
  }
  void setValue(const QString& value) override {
    const QSignalBlocker quiet_from(from_), quiet_to(to_);
    static const QRegularExpression kOnce("^(\\d\\d:\\d\\d)-(\\d\\d:\\d\\d)$");
    const auto once = kOnce.match(value);
    kind_->setCurrentIndex(value.isEmpty() ? kAlways : once.hasMatch() ? kDaily : kSeveral);
    if (once.hasMatch()) {
      from_->setTime(QTime::fromString(once.captured(1), "HH:mm"));
      to_->setTime(QTime::fromString(once.captured(2), "HH:mm"));
    }
    text_->setText(value);
    refresh();
  }
  void nameAfter(const QString& title) override {
    kind_->setAccessibleName(title);
    from_->setAccessibleName(SettingEditor::tr("%1: from").arg(title));
    to_->setAccessibleName(SettingEditor::tr("%1: until").arg(title));
    text_->setAccessibleName(SettingEditor::tr("%1: times").arg(title));
  }

 private:
  enum Kind { kAlways, kDaily, kSeveral };
  void refresh() {
    for (QWidget* part : std::initializer_list<QWidget*>{from_, dash_, to_}) {
      part->setVisible(kind_->currentIndex() == kDaily);
    }
    text_->setVisible(kind_->currentIndex() == kSeveral);
  }

  QComboBox* kind_;
  QTimeEdit* from_;
  QLabel* dash_;
  QTimeEdit* to_;
  QLineEdit* text_;
};

}  // namespace

SettingEditor* make_setting_editor(const ConfigKey* key, QWidget* parent) {
  if (key == nullptr) return new TextEditor(parent);
  switch (key->type) {
    case ConfigType::kWhole: return new WholeEditor(*key, parent);
    case ConfigType::kBytes: return new QuantityEditor({"kB", "MB", "GB", "TB"}, false, " ", false, parent);
    case ConfigType::kRate:
      return new QuantityEditor({"Mbit/s", "Gbit/s", "kB/s", "MB/s", "GB/s"}, false, " ", true, parent);
    case ConfigType::kDuration: return new QuantityEditor({"s", "m", "h", "d"}, true, "", false, parent);
    case ConfigType::kDayHours: return new HoursEditor(parent);
    case ConfigType::kOneOf: return new WordEditor(*key, parent);
    case ConfigType::kCapHours:
    case ConfigType::kSteps:
    case ConfigType::kEndpoint:
    case ConfigType::kFile:
    case ConfigType::kText:
    case ConfigType::kAddress:
    case ConfigType::kGpus: break;
  }
  return new TextEditor(parent);
}

}  // namespace atl
