#include "sim/read/observer.h"

#include <utility>

namespace pipesim {
namespace {

thread_local ReadObserver* observing = nullptr;

}  // namespace

Observing::Observing(ReadObserver& observer) : before_(std::exchange(observing, &observer)) {}

Observing::~Observing() { observing = before_; }

ReadObserver* Observing::now() { return observing; }

}  // namespace pipesim
