#include "validate/calibration/harness/network.h"

#ifdef PIPESIM_NCCL

#include <chrono>
#include <cstring>
#include <exception>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "validate/calibration/harness/machine.h"
#include "validate/calibration/harness/ranks.h"

namespace pipesim::calibration {
namespace {

constexpr double kShareOfTime = 0.25;
// How long a process that has failed leaves it to rank 0 to say so and to end all.
constexpr std::chrono::seconds kGrace{5};

// From rank 0 to another; answered by an empty message when it is done, or by what failed.
struct Order {
  enum Kind : int { kJoin, kLaunch, kLeave, kEnd } kind = kEnd;
  NodeGroup group{};
  ncclUniqueId id{};      // kJoin
  int64_t bytes = 0;      // kJoin: at most; kLaunch
  Operation operation{};  // kLaunch
  int launches = 0;       // kLaunch
};

std::string to_bytes(const Order& order) {
  return {reinterpret_cast<const char*>(&order), sizeof(order)};
}

Order order_of(const std::string& bytes) {
  if (bytes.size() != sizeof(Order)) throw NetworkError("the nodes run different programs");
  Order order;
  std::memcpy(&order, bytes.data(), sizeof(order));
  return order;
}

Mpi::Message await(const Mpi& mpi) {
  for (;;) {
    if (auto message = mpi.receive()) return *std::move(message);
    std::this_thread::yield();
  }
}

// Gives rank 0's orders to the other nodes of a group.
class Followers {
 public:
  Followers(const Mpi& mpi, std::span<const Node> nodes, const NodeGroup& group)
      : mpi_(mpi), nodes_(nodes), group_(group) {}

  void tell(Order order) {
    order.group = group_;
    for (int node = 1; node < group_.nodes; ++node) mpi_.send(node, to_bytes(order));
    awaited_ += group_.nodes - 1;
  }

  // Returns when all have done what they were told.
  void settle() {
    for (; awaited_ > 0; --awaited_) {
      const Mpi::Message answer = await(mpi_);
      if (answer.bytes.empty()) continue;
      throw NetworkError("node " + nodes_[static_cast<std::size_t>(answer.from)].name + ": " +
                         answer.bytes);
    }
  }

 private:
  const Mpi& mpi_;
  std::span<const Node> nodes_;
  NodeGroup group_;
  int awaited_ = 0;
};

Point point_of(const char* name, const NodeGroup& group, int64_t bytes) {
  Point point;
  point.group = "network";
  point.name = name;
  point.parameters = {{"ranks", std::to_string(group.ranks())},
                      {"nodes", std::to_string(group.nodes)},
                      {"size", std::to_string(bytes)}};
  point.bytes = static_cast<double>(bytes);
  return point;
}

// How many points were left when the time was over.
int measure_group(Session& session, Followers followers, const NodeGroup& group) {
  const std::vector<int64_t>& sizes = session.plan.message_bytes;
  const auto over = [&] { return session.elapsed_s() > network_time_s(session.plan); };
  int left = static_cast<int>(kOperations.size() * sizes.size());
  if (over()) return left;
  ncclUniqueId id;
  check_nccl(ncclGetUniqueId(&id), "ncclGetUniqueId");
  followers.tell({.kind = Order::kJoin, .id = id, .bytes = sizes.back()});
  std::optional<Ranks> ranks(std::in_place, id, group, 0, sizes.back());
  followers.settle();
  for (const NamedOperation& each : kOperations) {
    for (const int64_t bytes : sizes) {
      if (over()) break;
      Point point = point_of(each.name, group, bytes);
      session.timer.measure(point, ranks->work(each.operation, bytes), [&](int launches) {
        followers.tell({.kind = Order::kLaunch,
                        .bytes = bytes,
                        .operation = each.operation,
                        .launches = launches});
      });
      ranks->synchronize();
      followers.settle();
      session.measured.points.push_back(std::move(point));
      --left;
    }
  }
  followers.tell({.kind = Order::kLeave});
  ranks.reset();
  followers.settle();
  return left;
}

void obey(const Order& order, int node, std::optional<Ranks>& ranks) {
  switch (order.kind) {
    case Order::kJoin:
      ranks.emplace(order.id, order.group, node, order.bytes);
      return;
    case Order::kLaunch: {
      const Work work = ranks.value().work(order.operation, order.bytes);
      for (int launch = 0; launch < order.launches; ++launch) work(ranks->stream().get(), launch);
      ranks->synchronize();
      return;
    }
    case Order::kLeave:
      ranks.reset();
      return;
    case Order::kEnd:
      return;
  }
}

}  // namespace

Node this_node() {
  const Machine machine = this_machine();
  Node node{machine.name, machine.id, "", 0, why_no_device()};
  if (!node.fault.empty()) return node;
  try {
    const Card card(0);
    node.gpu = card.facts().name;
    node.gpus = card.facts().devices;
  } catch (const CudaError& error) {
    node.fault = error.what();
  }
  return node;
}

std::vector<Node> gather_nodes(const Mpi& mpi, Node own) {
  std::vector<Node> nodes(static_cast<std::size_t>(mpi.size()));
  nodes.front() = std::move(own);
  for (int awaited = mpi.size() - 1; awaited > 0; --awaited) {
    const Mpi::Message message = await(mpi);
    nodes[static_cast<std::size_t>(message.from)] = node_of(message.bytes);
  }
  return nodes;
}

void measure_network(Session& session, const Mpi& mpi, std::span<const Node> nodes) {
  int left = 0;
  for (const NodeGroup& group : node_groups(nodes)) {
    session.announce("after " + std::to_string(static_cast<int>(session.elapsed_s())) +
                     " s: between nodes: " + std::to_string(group.nodes) +
                     ", GPUs of each: " + std::to_string(group.gpus));
    left += measure_group(session, {mpi, nodes, group}, group);
  }
  dismiss(mpi);
  if (left > 0) {
    session.not_measured(std::to_string(left) + " points of network",
                         "the network's part of the mode's time was over");
  }
}

void dismiss(const Mpi& mpi) {
  for (int node = 1; node < mpi.size(); ++node) mpi.send(node, to_bytes({.kind = Order::kEnd}));
}

void follow(const Mpi& mpi, int rank, const Node& own) {
  mpi.send(0, to_text(own));
  std::optional<Ranks> ranks;
  for (;;) {
    const Mpi::Message message = await(mpi);
    const Order order = order_of(message.bytes);
    if (order.kind == Order::kEnd) return;
    std::string failed;
    try {
      obey(order, rank, ranks);
    } catch (const std::exception& error) {
      failed = error.what();
    }
    mpi.send(0, failed);
    if (failed.empty()) continue;
    // Rank 0 ends all when it reads this; it may be waiting for work of ours that does not come.
    std::this_thread::sleep_for(kGrace);
    throw NetworkError("node " + own.name + ": " + failed);
  }
}

double network_time_s(const Plan& plan) { return kShareOfTime * plan.time_limit_s; }

}  // namespace pipesim::calibration

#endif
