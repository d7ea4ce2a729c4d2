#include "sim/core/thread_team.h"

#include <algorithm>
#include <atomic>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/system/system_error.hpp>
#include <exception>
#include <fmt/format.h>
#include <latch>
#include <mutex>
#include <thread>

#include "sim/core/child_process.h"

namespace pipesim {
namespace {

std::atomic<int> most_threads = 0;  // 0: not limited

std::unique_ptr<boost::asio::thread_pool> pool_of(std::size_t threads) {
  try {
    return std::make_unique<boost::asio::thread_pool>(threads);
  } catch (const boost::system::system_error& error) {
    refuse_by_system(fmt::format("cannot start {} threads", threads), error.code().value());
  }
}

}  // namespace

int available_threads() {
  if (const int most = most_threads; most > 0) return most;
  return static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
}

void limit_threads(int most) { most_threads = most; }

ThreadTeam::ThreadTeam(int threads)
    : helpers_(static_cast<unsigned>(threads > 0 ? threads : available_threads()) - 1),
      pool_(pool_of(helpers_)) {}

ThreadTeam::~ThreadTeam() = default;

void ThreadTeam::run(std::size_t count, const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next = 0;
  std::once_flag failed;
  std::exception_ptr failure;
  const auto take_turns = [&] {
    for (std::size_t i = next++; i < count; i = next++) {
      try {
        work(i);
      } catch (...) {
        std::call_once(failed, [&] { failure = std::current_exception(); });
        next = count;
      }
    }
  };
  const std::size_t helping = std::min(helpers_, std::max<std::size_t>(count, 1) - 1);
  std::latch ended(static_cast<std::ptrdiff_t>(helping));
  for (std::size_t i = 0; i < helping; ++i) {
    boost::asio::post(*pool_, [&] {
      take_turns();
      ended.count_down();
    });
  }
  take_turns();
  ended.wait();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace pipesim
