#include "library/errors.h"

#include <utility>

#include "sim/core/error.h"

namespace pipesim {

api::Error::Error(ErrorKind of, const std::string& what, std::string where, int at_line,
                  int at_column)
    : std::runtime_error(what),
      kind(of),
      file(std::move(where)),
      line(at_line),
      column(at_column) {}

api::Error::~Error() = default;

const std::atomic<bool>& stop_of(const api::Watch& watch) {
  return watch.stop != nullptr ? *watch.stop : kNeverStopped;
}

void throw_public() {
  try {
    throw;
  } catch (const InputError& error) {
    const Location& where = error.where();
    throw api::Error(api::ErrorKind::kInput, error.what(), where.file, where.line, where.column);
  } catch (const InfeasibleError& error) {
    throw api::Error(api::ErrorKind::kInfeasible, error.what());
  } catch (const Stopped& error) {
    throw api::Error(api::ErrorKind::kStopped, error.what());
  } catch (const LogicError& error) {
    throw api::Error(api::ErrorKind::kFault, error.what());
  }
}

}  // namespace pipesim
