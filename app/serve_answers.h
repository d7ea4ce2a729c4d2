// Answers to the questions of `pipesim serve`, as lines of JSON.
//
// One search runs at a time. A new question, a reader that is gone and close() each end it within a
// fraction of a second; the failures of an answer, a second at most, are computed to their end.
// After kMostSearchSeconds a search answers with what it has.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

#include "app/serve_question.h"
#include "sim/http/http.h"
#include "sim/layouts/report.h"

namespace pipesim {

inline constexpr int kMostSearchSeconds = 60;

class ServeAnswers {
 public:
  // Writes {progress} ten times a second; then {answer: {number, report}} and {failures}, or
  // {error} or {stopped}. The report is what a plan's page shows, without runs of its rows. A
  // question that differs in failures alone has the same answer, of the same number, unless its
  // search was cut at kMostSearchSeconds.
  void plan(const ServeQuestion& question, const HttpWriter& write);
  // {timeline, devices, configurations} of a row of an answer, or {reason}. InputError for a row
  // that is not there, or an answer that is not kept.
  std::string run(long number, long row);
  void close() { closed_ = true; }

 private:
  struct Answered {
    long number = 0;
    std::string document;
  };
  class Search;

  [[nodiscard]] std::string document_of(long number);
  void keep(std::string document);

  std::atomic<bool> closed_ = false;
  std::atomic<std::uint64_t> newest_ = 0;  // the question that came last
  std::mutex search_, run_;                // held by the one that searches, or runs a row
  std::mutex answers_;                     // of what follows
  std::deque<Answered> kept_;
  long last_ = 0;
  // The last search that ended by itself, held by `search_`.
  std::vector<std::string> asked_before_;
  ClusterPlan plan_before_;
};

}  // namespace pipesim
