// All rows of a pipeline, executed beside each other on a device each, what they send really sent.
//
// A message leaves when its making action has ended; where transfers block, both its ends must have
// reached it. An action that needs it waits until it has arrived. A mere order between devices
// (copies over a shared host link) is a message without bytes. Everything is handed out in the
// result's order, in which each thing comes after its inputs. Times are seconds; O(tasks log
// tasks).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "validate/calibration/replay_device.h"
#include "validate/calibration/replay_report.h"

namespace pipesim::calibration {

struct Message {
  struct Made {
    std::uint32_t device = 0;
    std::uint32_t action = 0;
  };
  std::string name;
  std::uint32_t from = 0;  // device, as `to`
  std::uint32_t to = 0;
  std::vector<Made> after;              // what it waits for, on either device
  std::vector<std::uint32_t> messages;  // and what of others
  double bytes = 0;                     // 0: only its end is waited for
  double seconds = 0;                   // simulated
};

// An action of a device's row, or a message.
struct Step {
  bool sends = false;
  std::uint32_t device = 0;  // of an action
  std::uint32_t number = 0;
};

struct PipelineRows {
  std::vector<Row> rows;  // by device; all have the origin of the first
  std::vector<Message> messages;
  std::vector<Step> order;
};

// Rows of the first pipeline, as by row_of, with messages of that many bytes.
[[nodiscard]] PipelineRows rows_of(const Result& result, const std::vector<StageContent>& stages,
                                   Bytes message);

struct ExecutedPipeline {
  std::vector<Executed> rows;
  std::vector<double> messages;  // seconds that each took; 0 without bytes
};

class ReplayPipeline {
 public:
  virtual ~ReplayPipeline() = default;
  // The one to speak to from now on, until another is asked for.
  [[nodiscard]] virtual ReplayDevice& device(std::uint32_t number) = 0;

  virtual void begin(const PipelineRows& rows) = 0;  // which stay until `finish`
  virtual void send(std::uint32_t message) = 0;
  // A device's lane goes on when the message, which has been handed out, has arrived.
  virtual void receive(std::uint32_t message, std::uint32_t device, Lane lane) = 0;
  [[nodiscard]] virtual ExecutedPipeline finish() = 0;
};

// Executes all rows once.
[[nodiscard]] ExecutedPipeline replay(const PipelineRows& rows, ReplayPipeline& pipeline);

// A comparison for every row, with the messages that it received.
[[nodiscard]] std::vector<Comparison> compare(const PipelineRows& rows,
                                              const ExecutedPipeline& measured);

// Replays once untimed and then `runs` times; compares the run whose longest row is the median.
[[nodiscard]] std::vector<Comparison> replay_and_compare(const PipelineRows& rows, int runs,
                                                         ReplayPipeline& pipeline);

}  // namespace pipesim::calibration
