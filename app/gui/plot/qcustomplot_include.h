// QCustomPlot's header, which uses Qt's lower-case keywords; the project switches them off.
#pragma once

#define signals Q_SIGNALS
#define slots Q_SLOTS
#define emit
#define foreach Q_FOREACH
#include <qcustomplot.h>
#undef signals
#undef slots
#undef emit
#undef foreach
