// Light or dark, as the desktop says or as the person chose, and at once when that changes. Owned by main(); GUI
// thread.
#pragma once

#include <optional>

#include <QDBusVariant>
#include <QObject>

class QApplication;

namespace atl {

class Theme : public QObject {
  Q_OBJECT

 public:
  enum class Choice { kSystem, kLight, kDark };

  // `settings_file`: where the choice is kept; empty: nowhere.
  explicit Theme(QApplication& app, QString settings_file = {});

  Choice choice() const { return choice_; }
  void setChoice(Choice choice);
  bool dark() const { return dark_; }

  // The app's style and colours, without asking the desktop: for tests and pictures.
  static void apply(QApplication& app, bool dark);

 Q_SIGNALS:
  void changed();

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private Q_SLOTS:
  void settingChanged(const QString& space, const QString& key, const QDBusVariant& value);

 private:
  void askDesktop();
  void hear(unsigned scheme);  // of org.freedesktop.appearance: 1 dark, 2 light, 0 no preference
  void update();

  QApplication& app_;
  const QString settings_file_;
  Choice choice_ = Choice::kSystem;
  std::optional<bool> desktop_dark_;  // as the portal says
  bool palette_dark_ = false;         // as the platform's own palette looks
  bool applying_ = false;
  bool dark_ = false;
};

}  // namespace atl
