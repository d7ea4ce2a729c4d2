#include "library/simulations.h"

#include <span>
#include <sstream>
#include <utility>

#include "library/feasible.h"
#include "sim/report/json/json.h"
#include "sim/report/svg/svg.h"
#include "sim/report/text/table.h"

namespace pipesim {
namespace {

// The answer without graph and timeline: enough for documents, at a few bytes a device.
Answer without_timeline(const Answer& answer) {
  const Result& result = answer.result;
  return {answer.made,
          {.program = result.program,
           .graph = {},
           .timeline = {},
           .report = result.report,
           .throughput = result.throughput,
           .fits = result.fits,
           .host = result.host,
           .seconds = result.seconds},
          answer.advice};
}

std::string document_of(std::span<const Answer> answers, std::vector<RefusedSchedule> refused) {
  std::ostringstream out;
  write_json(out, answers, {PIPESIM_VERSION, false, std::move(refused)});
  return std::move(out).str();
}

}  // namespace

void Simulations::run(const std::shared_ptr<const Scenario>& scenario,
                      const std::atomic<bool>& stop, const std::function<void()>& done) {
  (void)make_engine(*scenario, 1);  // says once, not of each schedule, that it is not there
  refused_ = each_feasible(scenario, stop, [this, &done](Case made) {
    add(std::move(made));
    done();
  });
}

// SimGrid gives numbers and timeline at once; replay without a timeline takes half as long.
void Simulations::add(Case made) {
  if (made.scenario->engine == EngineKind::kSimGrid) {
    auto whole = std::make_shared<const Answer>(pipesim::answer(made));
    all_.push_back({std::move(made), without_timeline(*whole).result, std::move(whole)});
    return;
  }
  const Answer numbers{made, simulate(made, nullptr, nullptr, Detail::kNumbers)};
  all_.push_back({std::move(made), without_timeline(numbers).result});
}

SharedAnswer Simulations::answer(size_t index) {
  One& one = all_.at(index);
  const std::lock_guard lock(busy_);
  if (!one.whole) one.whole = std::make_shared<const Answer>(pipesim::answer(one.made));
  return one.whole;
}

std::string Simulations::json() {
  std::vector<Answer> all;
  for (size_t i = 0; i < all_.size(); ++i) all.push_back(without_timeline(*answer(i)));
  return document_of(all, refused_);
}

std::string Simulations::table() const {
  std::vector<Answer> answers;
  for (const auto& [made, numbers, whole] : all_) answers.push_back({made, numbers});
  return comparison_table(answers);
}

std::string json_of(const Answer& answer) { return document_of({&answer, 1}, {}); }

std::string svg_of(const Answer& answer, std::optional<double> pixels) {
  SvgOptions options{.name = answer.made.choice.name, .bytes = knows_memory(*answer.made.scenario)};
  if (pixels) options.axis = {axis_of(answer.result).seconds, *pixels};
  std::ostringstream out;
  write_svg(out, answer.made, answer.result, options);
  return std::move(out).str();
}

std::vector<std::vector<std::string>> passes_of(const Program& program) {
  std::vector<std::vector<std::string>> lists(program.shape().devices);
  for (int device = 0; device < program.shape().devices; ++device) {
    for (const Pass& pass : program.passes(device)) {
      lists[device].push_back(program.text(device, pass));
    }
  }
  return lists;
}

}  // namespace pipesim
