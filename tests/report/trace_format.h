// The rules of the Chrome trace event format, and what Perfetto's reader demands beyond them, for
// the kinds of events that pipesim writes.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fmt/format.h>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace pipesim::testing {

class TraceFormat {
 public:
  explicit TraceFormat(const std::string& text) : trace_(nlohmann::json::parse(text)) {
    if (!trace_.is_object() || !trace_["traceEvents"].is_array()) {
      faults_.emplace_back("not an object with an array 'traceEvents'");
      return;
    }
    check_numbers(text);
    for (const auto& event : trace_["traceEvents"]) check(event);
    check_slices();
    check_arrows();
    for (const auto& [key, begin] : open_) fault("b without e", *begin);
    for (const auto pid : processes_) {
      if (!named_processes_.contains(pid))
        faults_.push_back(fmt::format("process {}: no name", pid));
    }
    for (const auto& [tid, pid] : threads_) {
      if (!named_threads_.contains(tid)) faults_.push_back(fmt::format("thread {}: no name", tid));
    }
  }

  [[nodiscard]] const std::vector<std::string>& faults() const { return faults_; }
  [[nodiscard]] size_t count(const std::string& phase) const {
    const auto found = counts_.find(phase);
    return found == counts_.end() ? 0 : found->second;
  }
  [[nodiscard]] const nlohmann::json& events() const { return trace_.at("traceEvents"); }

 private:
  using Event = nlohmann::json;

  void fault(const std::string& what, const Event& event) {
    faults_.push_back(what + ": " + event.dump());
  }

  // Microseconds in fixed notation with three decimals: others lose digits, or are not read at all.
  void check_numbers(const std::string& text) {
    static const std::regex kTime(R"~("(ts|dur)":([^,}]*))~");
    static const std::regex kFixed(R"([0-9]+\.[0-9]{3})");
    for (std::sregex_iterator each(text.begin(), text.end(), kTime), end; each != end; ++each) {
      if (!std::regex_match((*each)[2].str(), kFixed)) faults_.push_back("time " + each->str());
    }
  }

  static std::int64_t ns(const Event& event, const char* key) {
    return std::llround(event.at(key).get<double>() * 1000);
  }
  static bool has_text(const Event& event, const char* key) {
    return event.contains(key) && event[key].is_string() && !event[key].get<std::string>().empty();
  }

  void check(const Event& event) {
    if (!event.is_object() || !has_text(event, "ph") || !has_text(event, "name")) {
      return fault("needs 'ph' and 'name'", event);
    }
    const std::string phase = event["ph"];
    ++counts_[phase];
    // 0 is the idle process, and the idle thread.
    if (!event.contains("pid") || !event["pid"].is_number_unsigned() || event["pid"] == 0) {
      return fault("needs a 'pid' above 0", event);
    }
    if (phase == "M") return check_metadata(event);
    processes_.insert(event["pid"].get<int>());
    if (!event.contains("ts") || !event["ts"].is_number()) return fault("needs 'ts'", event);
    if (phase == "C") return check_counter(event);
    if (!event.contains("tid") || !event["tid"].is_number_unsigned() || event["tid"] == 0) {
      return fault("needs a 'tid' above 0", event);
    }
    const auto [owner, fresh] = threads_.emplace(event["tid"].get<int>(), event["pid"].get<int>());
    if (!fresh && owner->second != event["pid"]) fault("a thread of two processes", event);
    if (!has_text(event, "cat")) fault("needs 'cat'", event);
    if (phase == "X") return check_slice(event);
    if (!event.contains("id")) return fault("needs 'id'", event);
    if (phase == "b" || phase == "e") return check_async(event);
    if (phase == "s" || phase == "f") {
      if (!arrows_[phase].emplace(event["id"].get<long>(), &event).second) fault("twice", event);
      if (phase == "f" && event.value("bp", "") != "e") fault("needs 'bp': 'e'", event);
      return;
    }
    fault("unknown phase", event);
  }

  void check_metadata(const Event& event) {
    const std::string name = event["name"];
    if (!event.contains("args")) return fault("needs 'args'", event);
    const Event& args = event["args"];
    if (name == "process_name" && has_text(args, "name")) {
      if (!named_processes_.insert(event["pid"].get<int>()).second) fault("named twice", event);
    } else if (name == "thread_name" && has_text(args, "name") && event.contains("tid")) {
      if (!named_threads_.insert(event["tid"].get<int>()).second) fault("named twice", event);
    } else if (name != "process_sort_index" || !args.contains("sort_index")) {
      fault("unknown metadata", event);
    }
  }

  void check_counter(const Event& event) {
    if (!event.contains("args") || event["args"].empty()) return fault("needs 'args'", event);
    for (const auto& value : event["args"]) {
      if (!value.is_number()) fault("not a number", event);
    }
    const auto key = std::pair(event["pid"].get<int>(), event["name"].get<std::string>());
    const auto [last, fresh] = counters_.emplace(key, ns(event, "ts"));
    if (!fresh && last->second > ns(event, "ts")) fault("back in time", event);
    last->second = ns(event, "ts");
  }

  void check_slice(const Event& event) {
    if (!event.contains("dur") || event["dur"] < 0) return fault("needs 'dur'", event);
    slices_[event["tid"].get<int>()].emplace_back(ns(event, "ts"),
                                                  ns(event, "ts") + ns(event, "dur"), &event);
  }

  void check_async(const Event& event) {
    const auto key = std::tuple(event["cat"].get<std::string>(), event["id"].get<long>(),
                                event["pid"].get<int>(), event["name"].get<std::string>());
    if (event["ph"] == "b") {
      if (!open_.emplace(key, &event).second) fault("b within b", event);
      return;
    }
    const auto begin = open_.find(key);
    if (begin == open_.end()) return fault("e without b", event);
    if (ns(*begin->second, "ts") > ns(event, "ts")) fault("ends before it begins", event);
    open_.erase(begin);
  }

  // Slices of a thread follow each other (they could nest; ours never do).
  void check_slices() {
    for (auto& [tid, slices] : slices_) {
      std::ranges::sort(slices, {}, [](const Slice& slice) {
        return std::pair(std::get<0>(slice), std::get<1>(slice));
      });
      for (size_t i = 1; i < slices.size(); ++i) {
        if (std::get<1>(slices[i - 1]) > std::get<0>(slices[i])) {
          fault("overlaps the slice before it", *std::get<2>(slices[i]));
        }
      }
    }
  }

  [[nodiscard]] bool within_slice(const Event& event) const {
    const auto of_thread = slices_.find(event["tid"].get<int>());
    if (of_thread == slices_.end()) return false;
    const std::int64_t at = ns(event, "ts");
    const auto after = std::ranges::upper_bound(of_thread->second, at, {},
                                                [](const Slice& s) { return std::get<0>(s); });
    return after != of_thread->second.begin() && at <= std::get<1>(*std::prev(after));
  }

  void check_arrows() {
    for (const auto& [id, from] : arrows_["s"]) {
      const auto to = arrows_["f"].find(id);
      if (to == arrows_["f"].end()) {
        fault("s without f", *from);
        continue;
      }
      if (ns(*from, "ts") > ns(*to->second, "ts")) fault("arrives before it leaves", *from);
      if ((*from)["cat"] != (*to->second)["cat"] || (*from)["name"] != (*to->second)["name"]) {
        fault("s and f differ in name or category", *from);
      }
      if (!within_slice(*from)) fault("leaves no slice", *from);
      if (!within_slice(*to->second)) fault("reaches no slice", *to->second);
    }
    if (arrows_["s"].size() != arrows_["f"].size()) faults_.emplace_back("f without s");
  }

  using Slice = std::tuple<std::int64_t, std::int64_t, const Event*>;  // start, end

  nlohmann::json trace_;
  std::vector<std::string> faults_;
  std::map<std::string, size_t> counts_;
  std::set<int> processes_, named_processes_, named_threads_;
  std::map<int, int> threads_;                // to their process
  std::map<int, std::vector<Slice>> slices_;  // by thread
  std::map<std::tuple<std::string, long, int, std::string>, const Event*> open_;
  std::map<std::string, std::map<long, const Event*>> arrows_;  // by phase and id
  std::map<std::pair<int, std::string>, std::int64_t> counters_;
};

}  // namespace pipesim::testing
