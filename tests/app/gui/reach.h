// Whether everybody can use a window: each control has a name for screen readers, and the tab key comes by. Owned by a
// test; GUI thread.
#pragma once

#include <QStringList>

class QWidget;

namespace atl::test {

// What can be operated, is seen, and says no name.
QStringList unnamed_controls(const QWidget& window);
// What can be operated, is seen, and is not reached from the window's first control by the tab key.
QStringList unreached_controls(QWidget& window);
// Letters with which Alt chooses two things that are seen together: then it chooses neither.
QStringList shared_mnemonics(const QWidget& window);
// What can be clicked, but neither lies within the window nor is scrolled to.
QStringList controls_out_of_reach(const QWidget& window);
// Labels and buttons whose text does not fit into them.
QStringList cut_texts(const QWidget& window);

}  // namespace atl::test
