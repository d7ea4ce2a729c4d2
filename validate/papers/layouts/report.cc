// Families of measured layouts as text, JSON and a drawing.
#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/report/svg/elements.h"
#include "sim/report/svg/xml.h"
#include "sim/report/text/aligned.h"
#include "validate/papers/layouts/layouts.h"

namespace pipesim {
namespace {

constexpr int kMany = 128;     // GPUs from which on regret is summed up apart
constexpr int kFewTwins = 10;  // fewer say nothing about how a measured order repeats

std::string percent(double share) { return fmt::format("{:.1f}%", 100 * share); }

// Mean and median regret, mean tau.
std::string summary(const std::string& name, std::vector<const LayoutFamily*> of) {
  if (of.empty()) return "";
  const auto number = static_cast<double>(of.size());
  double regret = 0;
  double tau = 0;
  for (const LayoutFamily* family : of) {
    regret += family->regret / number;
    tau += family->tau / number;
  }
  std::ranges::sort(of, {}, &LayoutFamily::regret);
  const size_t half = of.size() / 2;
  const double median =
      of.size() % 2 == 1 ? of[half]->regret : (of[half - 1]->regret + of[half]->regret) / 2;
  const auto near =
      std::ranges::count_if(of, [](const LayoutFamily* family) { return family->regret <= 0.05; });
  return fmt::format(
      "{}: {} families, tau {:.2f}, regret {} in the mean, {} median, at most 5% in {}\n", name,
      of.size(), tau, percent(regret), percent(median), near);
}

std::string said_to_fit(const LayoutFamily& family) {
  if (family.failed.empty()) return "-";
  return fmt::format("{} of {}", family.failed_said_to_fit, family.failed.size());
}

std::string tau_of_twins(const LayoutFamily& family) {
  if (family.twins < kFewTwins) return "-";
  return fmt::format("{:.2f} ({})", family.twins_tau, family.twins);
}

std::vector<const LayoutFamily*> with_gpus(const std::vector<LayoutFamily>& families, int fewest) {
  std::vector<const LayoutFamily*> some;
  for (const LayoutFamily& family : families) {
    if (family.gpus >= fewest) some.push_back(&family);
  }
  return some;
}

// Measurements that contradict themselves, and all families without them.
std::string sound_part(const std::vector<LayoutFamily>& families) {
  int unsound = 0;
  std::string left;
  for (const LayoutFamily& family : families) {
    unsound += family.unsound;
    if (!mostly_unsound(family)) continue;
    left += fmt::format("{}{} on {} GPUs ({} of {})", left.empty() ? "" : ", ", family.model,
                        family.gpus, family.unsound, family.compared);
  }
  if (unsound == 0) return "";
  const std::vector<LayoutFamily> sound = sound_families(families);
  std::string text = fmt::format(
      "\n{} layouts were measured slower than on half of the GPUs; without them\n", unsound);
  if (!left.empty()) text += "and without families where most are so, " + left + ":\n";
  return text + summary("sound", with_gpus(sound, 0)) +
         summary(fmt::format("sound, {} GPUs and more", kMany), with_gpus(sound, kMany));
}

// Pixels. Regret beyond kMost stands at the edge.
constexpr double kNames = 300, kStrip = 260, kGap = 40, kLine = 18, kHead = 62, kEdge = 20,
                 kMost = 0.5;

double place_of_tau(double tau) { return kNames + kStrip * (tau + 1) / 2; }

double place_of_regret(double regret) {
  return kNames + kStrip + kGap + kStrip * std::clamp(regret / kMost, 0.0, 1.0);
}

std::string circle(double x, double y, bool filled, const std::string& title) {
  return fmt::format(
      "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" fill=\"{}\" stroke=\"#0072b2\">"
      "<title>{}</title></circle>\n",
      x, y, filled ? "#0072b2" : "#ffffff", xml_escaped(title));
}

std::string family_line(const LayoutFamily& family, double y) {
  return svg_words(
             kNames - 10, y + 4,
             fmt::format("{}, {} GPUs ({})", family.model, family.gpus, family.layouts.size()),
             "end") +
         circle(place_of_tau(family.tau), y, true, fmt::format("tau {:.2f}", family.tau)) +
         circle(place_of_regret(family.regret_of_three), y, false,
                "best of three: " + percent(family.regret_of_three)) +
         circle(place_of_regret(family.regret), y, true, "favourite: " + percent(family.regret));
}

}  // namespace

std::string layouts_text(const std::vector<LayoutFamily>& families) {
  std::vector<Row> rows{{"model", "GPU", "GPUs", "layouts", "tau", "regret", "best of 3",
                         "failed, fit", "tau of twins"}};
  int unknown = 0;
  for (const LayoutFamily& family : families) {
    rows.push_back({family.model, family.gpu, fmt::format("{}", family.gpus),
                    fmt::format("{}", family.layouts.size()), fmt::format("{:.2f}", family.tau),
                    percent(family.regret), percent(family.regret_of_three), said_to_fit(family),
                    tau_of_twins(family)});
    unknown += static_cast<int>(family.not_modelled.size());
  }
  std::string text = aligned(rows, 2) + "\n" + summary("all", with_gpus(families, 0)) +
                     summary(fmt::format("{} GPUs and more", kMany), with_gpus(families, kMany)) +
                     sound_part(families);
  if (unknown > 0) text += fmt::format("not modelled: {} layouts\n", unknown);
  return text;
}

std::string layouts_rows(const std::vector<LayoutFamily>& families) {
  std::vector<Row> rows{{"layout", "sizes", "measured", "simulated", "error"}};
  for (const LayoutFamily& family : families) {
    std::vector<const MeasuredLayout*> order;
    for (const MeasuredLayout& layout : family.layouts) order.push_back(&layout);
    std::ranges::stable_sort(order, {},
                             [](const MeasuredLayout* each) { return *each->simulated; });
    for (const MeasuredLayout* layout : order) {
      rows.push_back({layout->id, layout->words, fmt::format("{:.3f} s", *layout->measured),
                      fmt::format("{:.3f} s", *layout->simulated),
                      fmt::format("{:+.1f}%", 100 * (*layout->simulated / *layout->measured - 1))});
    }
    for (const MeasuredLayout& layout : family.failed) {
      rows.push_back({layout.id, layout.words, "failed", fmt::format("{:.3f} s", *layout.simulated),
                      "fits: " + std::string(kFitNames[static_cast<size_t>(layout.fits)])});
    }
    for (const MeasuredLayout& layout : family.not_modelled) {
      rows.push_back({layout.id, layout.words, layout.measured ? "ran" : "failed", "-",
                      "not modelled: " + layout.reason});
    }
  }
  return aligned(rows, 2);
}

namespace {

nlohmann::ordered_json decision(const LayoutFamily& family) {
  return {{"layouts", family.layouts.size()},
          {"tau", family.tau},
          {"regret", family.regret},
          {"regret_of_three", family.regret_of_three}};
}

}  // namespace

std::string layouts_json(const std::vector<LayoutFamily>& families) {
  auto json = nlohmann::ordered_json::array();
  for (const LayoutFamily& family : families) {
    const std::vector<LayoutFamily> sound = sound_families({family});
    nlohmann::ordered_json each{{"model", family.model}, {"gpus", family.gpus}};
    each.update(decision(family));
    each.update({{"failed_said_to_fit", family.failed_said_to_fit},
                 {"gpu", family.gpu},
                 {"failed", family.failed.size()},
                 {"not_modelled", family.not_modelled.size()},
                 {"twins", family.twins},
                 {"twins_tau", family.twins_tau},
                 {"compared", family.compared},
                 {"unsound", family.unsound},
                 {"sound", nullptr}});
    if (!sound.empty()) each["sound"] = decision(sound.front());
    json.push_back(std::move(each));
  }
  return json.dump(1) + "\n";
}

std::string layouts_drawing(const std::vector<LayoutFamily>& families) {
  const double bottom = kHead + kLine * static_cast<double>(families.size());
  const double width = kNames + 2 * kStrip + kGap + kEdge;
  std::string svg =
      svg_words(place_of_tau(0), 16, "Kendall's tau, measured and simulated order", "middle") +
      svg_words(place_of_regret(kMost / 2), 16, "regret of the favourite (open: best of three)",
                "middle");
  for (const double tau : {-1.0, -0.5, 0.0, 0.5, 1.0}) {
    svg += svg_grid_line(place_of_tau(tau), kHead - 6, bottom, tau == 0, fmt::format("{:g}", tau));
  }
  for (const double regret : {0.0, 0.1, 0.2, 0.3, 0.4, 0.5}) {
    svg += svg_grid_line(place_of_regret(regret), kHead - 6, bottom, regret == 0,
                         fmt::format("{:.0f}%", 100 * regret));
  }
  double y = kHead + kLine / 2;
  for (const LayoutFamily& family : families) {
    svg += family_line(family, y);
    y += kLine;
  }
  return svg_page("Order of measured layouts", width, bottom + kEdge, svg);
}

}  // namespace pipesim
