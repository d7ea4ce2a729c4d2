// Simulations of a scenario's schedules: their numbers at once, all else once it is asked for.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "sim/case/simulate.h"
#include "sim/prepare/advice.h"
#include "sim/report/json/document.h"

namespace pipesim {

using SharedAnswer = std::shared_ptr<const Answer>;

class Simulations {
 public:
  // A schedule's numbers, and the whole answer where it was asked for.
  struct One {
    Case made;
    Result numbers;
    SharedAnswer whole = {};
  };

  Simulations() = default;
  // Throws as each_feasible does. `done` is called after each schedule that can be met.
  void run(
      const std::shared_ptr<const Scenario>& scenario, const std::atomic<bool>& stop,
      const std::function<void()>& done = [] {});

  [[nodiscard]] size_t size() const { return all_.size(); }
  [[nodiscard]] const One& at(size_t index) const { return all_.at(index); }
  [[nodiscard]] const std::vector<RefusedSchedule>& refused() const { return refused_; }

  // Simulates in full what was not; from any thread.
  SharedAnswer answer(size_t index);
  // The document and the table of `pipesim run`.
  std::string json();
  [[nodiscard]] std::string table() const;

 private:
  void add(Case made);

  std::vector<One> all_;
  std::vector<RefusedSchedule> refused_;
  std::mutex busy_;  // of what is simulated in full
};

// The document of `pipesim run --json` of one schedule.
std::string json_of(const Answer& answer);
// `pixels`: of the time axis; without them as many as numbers in boxes need.
std::string svg_of(const Answer& answer, std::optional<double> pixels = {});
// The passes of every device in order, as text.
std::vector<std::vector<std::string>> passes_of(const Program& program);

}  // namespace pipesim
