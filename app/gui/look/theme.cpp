#include "app/gui/look/theme.h"

#include <QApplication>
#include <QDBusConnection>
#include <QDBusMessage>
#include <QDBusPendingCallWatcher>
#include <QDBusPendingReply>
#include <QEvent>
#include <QFontDatabase>
#include <QSettings>

#include "app/gui/look/colours.h"
#include "app/gui/look/style.h"

namespace atl {
namespace {

constexpr const char* kPortal = "org.freedesktop.portal.Desktop";
constexpr const char* kPortalPath = "/org/freedesktop/portal/desktop";
constexpr const char* kPortalSettings = "org.freedesktop.portal.Settings";
constexpr const char* kAppearance = "org.freedesktop.appearance";
constexpr const char* kScheme = "color-scheme";
constexpr const char* kChoiceKey = "appearance/theme";
constexpr const char* kDarkProperty = "atoll_dark";
constexpr const char* kFontFamily = "Inter";  // its figures and small sizes are made for screens

// Before one is set, the platform's or the style's own.
bool platform_is_dark() {
  const QPalette palette = QGuiApplication::palette();
  return palette.color(QPalette::Window).lightness() < palette.color(QPalette::WindowText).lightness();
}

Theme::Choice choice_named(const QString& name) {
  if (name == "light") return Theme::Choice::kLight;
  return name == "dark" ? Theme::Choice::kDark : Theme::Choice::kSystem;
}

const char* name_of(Theme::Choice choice) {
  if (choice == Theme::Choice::kLight) return "light";
  return choice == Theme::Choice::kDark ? "dark" : "system";
}

// In the desktop's size, and with its font for letters that this one has not. Where it is not installed the desktop's
// font stays.
void choose_font() {
  if (!QFontDatabase::hasFamily(kFontFamily)) return;
  QFont font = QFontDatabase::systemFont(QFontDatabase::GeneralFont);
  font.setFamilies(QStringList(kFontFamily) + font.families());
  if (font != QApplication::font()) QApplication::setFont(font);
}

}  // namespace

Theme::Theme(QApplication& app, QString settings_file) : app_(app), settings_file_(std::move(settings_file)) {
  palette_dark_ = platform_is_dark();
  if (!settings_file_.isEmpty()) {
    choice_ = choice_named(QSettings(settings_file_, QSettings::IniFormat).value(kChoiceKey).toString());
  }
  update();
  app_.installEventFilter(this);
  askDesktop();
}

void Theme::setChoice(Choice choice) {
  choice_ = choice;
  if (!settings_file_.isEmpty()) {
    QSettings(settings_file_, QSettings::IniFormat).setValue(kChoiceKey, QString(name_of(choice)));
  }
  update();
}

void Theme::apply(QApplication& app, bool dark) {
  const Colours& colours = dark ? dark_colours() : light_colours();
  if (!app.property(kDarkProperty).isValid()) QApplication::setStyle(new AtollStyle);
  app.setProperty(kDarkProperty, dark);
  choose_font();
  QApplication::setPalette(palette_of(colours));
}

// Nothing waits for the answer: until it comes, the platform's palette tells.
void Theme::askDesktop() {
  if (qEnvironmentVariableIsEmpty("DBUS_SESSION_BUS_ADDRESS")) return;
  QDBusConnection bus = QDBusConnection::sessionBus();
  if (!bus.isConnected()) return;
  // Without the sender's name: Qt would look it up and wait.
  bus.connect(QString(), kPortalPath, kPortalSettings, "SettingChanged", this,
              SLOT(settingChanged(QString, QString, QDBusVariant)));
  QDBusMessage call = QDBusMessage::createMethodCall(kPortal, kPortalPath, kPortalSettings, "Read");
  call << QString(kAppearance) << QString(kScheme);
  auto* watcher = new QDBusPendingCallWatcher(bus.asyncCall(call), this);
  connect(watcher, &QDBusPendingCallWatcher::finished, this, [this, watcher] {
    const QDBusPendingReply<QDBusVariant> reply = *watcher;
    watcher->deleteLater();
    if (reply.isError()) return;  // a desktop without a portal
    QVariant value = reply.value().variant();
    if (value.canConvert<QDBusVariant>())
      value = value.value<QDBusVariant>().variant();  // some answer it wrapped twice
    hear(value.toUInt());
  });
}

void Theme::settingChanged(const QString& space, const QString& key, const QDBusVariant& value) {
  if (space == kAppearance && key == kScheme) hear(value.variant().toUInt());
}

void Theme::hear(unsigned scheme) {
  desktop_dark_ = scheme == 1 ? std::optional(true) : scheme == 2 ? std::optional(false) : std::nullopt;
  update();
}

// The platform has another theme: with our palette taken back, its own is seen.
bool Theme::eventFilter(QObject* watched, QEvent* event) {
  if (watched == &app_ && event->type() == QEvent::ThemeChange && !applying_) {
    applying_ = true;
    QApplication::setPalette(QPalette());
    palette_dark_ = platform_is_dark();
    apply(app_, dark_);
    applying_ = false;
    update();
  }
  return QObject::eventFilter(watched, event);
}

void Theme::update() {
  const bool dark = choice_ == Choice::kSystem ? desktop_dark_.value_or(palette_dark_) : choice_ == Choice::kDark;
  const bool same = dark == dark_ && app_.property(kDarkProperty).isValid();
  dark_ = dark;
  if (same) return;
  applying_ = true;
  apply(app_, dark_);
  applying_ = false;
  Q_EMIT changed();
}

}  // namespace atl
