// A field for one value of the configuration, after its kind: a number, a rate with its unit, hours of the day, ... Its
// value is the text that `config.set` takes. GUI thread.
#pragma once

#include <QString>
#include <QWidget>

#include "app/config/config_keys.h"

namespace atl {

class SettingEditor : public QWidget {
  Q_OBJECT

 public:
  using QWidget::QWidget;

  virtual QString value() const = 0;
  virtual void setValue(const QString& value) = 0;  // `edited` is not emitted
  // For screen readers, of every control in it.
  virtual void nameAfter(const QString& title) = 0;

 Q_SIGNALS:
  void edited();
};

// Null: a key that this version does not know, edited as text.
SettingEditor* make_setting_editor(const ConfigKey* key, QWidget* parent = nullptr);

}  // namespace atl
