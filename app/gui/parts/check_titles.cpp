#include "app/gui/parts/check_titles.h"

#include <array>

#include <QCoreApplication>

namespace atl {
namespace {

struct CheckTitles {
  Q_DECLARE_TR_FUNCTIONS(CheckTitles)
};

struct Title {
  const char* id;
  const char* title;
};
// The rows of net/check/judge.cpp.
constexpr std::array kTitles{
    Title{"cpu", QT_TRANSLATE_NOOP("CheckTitles", "Processor")},
    Title{"ram", QT_TRANSLATE_NOOP("CheckTitles", "Main memory")},
    Title{"host.nofile", QT_TRANSLATE_NOOP("CheckTitles", "Open files allowed")},
    Title{"host.shm", QT_TRANSLATE_NOOP("CheckTitles", "Shared memory")},
    Title{"host.memlock", QT_TRANSLATE_NOOP("CheckTitles", "Locked memory allowed")},
    Title{"disk.free", QT_TRANSLATE_NOOP("CheckTitles", "Free disk space")},
    Title{"disk.write", QT_TRANSLATE_NOOP("CheckTitles", "Disk writing")},
    Title{"gpu.driver", QT_TRANSLATE_NOOP("CheckTitles", "GPU driver")},
    Title{"gpu.model", QT_TRANSLATE_NOOP("CheckTitles", "GPU model")},
    Title{"gpu.libraries", QT_TRANSLATE_NOOP("CheckTitles", "GPU libraries")},
    Title{"gpu.memory", QT_TRANSLATE_NOOP("CheckTitles", "GPU memory")},
    Title{"gpu.ecc", QT_TRANSLATE_NOOP("CheckTitles", "GPU memory errors (ECC)")},
    Title{"gpu.thermal", QT_TRANSLATE_NOOP("CheckTitles", "GPU temperature")},
    Title{"gpu.xid", QT_TRANSLATE_NOOP("CheckTitles", "GPU faults (Xid)")},
    Title{"gpu.bf16", QT_TRANSLATE_NOOP("CheckTitles", "GPU speed (bf16)")},
    Title{"gpu.spread", QT_TRANSLATE_NOOP("CheckTitles", "GPUs equally fast")},
    Title{"gpu.hbm", QT_TRANSLATE_NOOP("CheckTitles", "GPU memory bandwidth")},
    Title{"gpu.pcie", QT_TRANSLATE_NOOP("CheckTitles", "Link to the GPUs (PCIe)")},
    Title{"gpu.nvlink", QT_TRANSLATE_NOOP("CheckTitles", "Link between GPUs (NVLink)")},
    Title{"clock", QT_TRANSLATE_NOOP("CheckTitles", "Clock")},
    Title{"net.cc", QT_TRANSLATE_NOOP("CheckTitles", "TCP congestion control")},
    Title{"net.rtt", QT_TRANSLATE_NOOP("CheckTitles", "Round trip to the hub")},
    Title{"net.bandwidth", QT_TRANSLATE_NOOP("CheckTitles", "Bandwidth to the hub")},
    Title{"net.buffers", QT_TRANSLATE_NOOP("CheckTitles", "Buffers for long links")},
    Title{"net.loss", QT_TRANSLATE_NOOP("CheckTitles", "Packet loss")},
    Title{"net.sync", QT_TRANSLATE_NOOP("CheckTitles", "Time for synchronisation")},
    Title{"net.inbound", QT_TRANSLATE_NOOP("CheckTitles", "Reachable from outside")},
    Title{"net.islands", QT_TRANSLATE_NOOP("CheckTitles", "Way to the other islands")},
};

}  // namespace

QString check_title(const std::string& id) {
  for (const Title& title : kTitles) {
    if (id == title.id) return CheckTitles::tr(title.title);
  }
  return QString::fromStdString(id);
}

QString verdict_word(Verdict verdict) {
  switch (verdict) {
    case Verdict::kPass: return CheckTitles::tr("Pass");
    case Verdict::kWarn: return CheckTitles::tr("Warning");
    case Verdict::kFail: return CheckTitles::tr("Fail");
    case Verdict::kSkip: return CheckTitles::tr("Skipped");
  }
  return {};
}

}  // namespace atl
