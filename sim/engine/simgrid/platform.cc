#include "sim/engine/simgrid/platform.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <simgrid/kernel/ProfileBuilder.hpp>
#include <simgrid/plugins/energy.h>
#include <string>

namespace pipesim::simgrid_module {
namespace {

// Two numbers to all their digits.
std::string numbers(const char* format, double a, double b) {
  std::array<char, 80> text{};
  std::snprintf(text.data(), text.size(), format, a, b);
  return text.data();
}

}  // namespace

Platform::Platform(const Job& of) : job(of), dataflow(of) {
  // SimGrid treats clock readings nearer than the precision as one. It must exceed the rounding of
  // the clock, or a completion is stepped over and lost; any more than that is an error at short
  // times. Contention and slow hosts may stretch a run: 2^-46 leaves a factor of 64 for that.
  double slowest = 1;
  for (const JobSpeedChange& change : job.speed_changes) {
    if (change.factor > 0) slowest = std::min(slowest, change.factor);
  }
  precision =
      std::max(job_longest_path(job) / slowest, std::numeric_limits<double>::min()) * 0x1p-46;
  start_engine();
  // Payloads are whole numbers: choose the unit so that the largest has 62 bits.
  const double largest = job_largest_message(job);
  const double unit = largest > 0 ? std::exp2(61 - std::ilogb(largest)) : 1;
  rate.reserve(job.classes.size());
  for (const JobClass& each : job.classes) {
    const bool transfer = each.kind == JobKind::kTransfer;
    rate.push_back(transfer ? job.routes[each.route].bandwidth * unit : 0);
  }
  build_zone(unit);
}

void Platform::start_engine() {
  // CM02 without its TCP terms is plain max-min sharing.
  std::vector<std::string> words = {"pipesim",
                                    "--log=root.thresh:critical",
                                    "--cfg=network/model:CM02",
                                    "--cfg=network/crosstraffic:0",
                                    "--cfg=network/TCP-gamma:0",
                                    "--cfg=network/optim:Lazy",
                                    "--cfg=cpu/optim:Lazy",
                                    "--cfg=contexts/factory:raw",
                                    "--cfg=contexts/nthreads:1",
                                    "--cfg=debug/clean-atexit:no"};
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  int argc = static_cast<int>(words.size());
  engine = std::make_unique<s4u::Engine>(&argc, argv.data());
  s4u::Engine::set_config("surf/precision", precision);
  if (job.header->settings.energy) sg_host_energy_plugin_init();
}

void Platform::build_zone(double unit) {
  s4u::NetZone* zone = s4u::create_full_zone("cluster");
  add_hosts(*zone);
  add_routes(*zone, unit);
  zone->seal();
}

void Platform::add_hosts(s4u::NetZone& zone) {
  hosts.reserve(job.header->sizes.hosts);
  host_changes_speed.resize(job.header->sizes.hosts);
  for (const JobSpeedChange& change : job.speed_changes) host_changes_speed[change.host] = true;
  const JobSettings& settings = job.header->settings;
  size_t change = 0;
  for (size_t i = 0; i < job.header->sizes.hosts; ++i) {
    s4u::Host* host = zone.create_host("gpu" + std::to_string(i), kHostSpeed);
    if (settings.energy) {
      host->set_property("wattage_per_state",
                         numbers("%.17g:%.17g", settings.idle_power, settings.busy_power));
    }
    std::string profile;
    for (; change < job.speed_changes.size() &&
           job.speed_changes[change].host == static_cast<std::int32_t>(i);
         ++change) {
      const JobSpeedChange& to = job.speed_changes[change];
      // SimGrid ignores a speed of 0: the run interrupts what computes instead.
      if (to.factor != 0) profile += numbers("%.17g %.17g\n", to.at_seconds, to.factor);
    }
    if (!profile.empty()) {
      host->set_speed_profile(::simgrid::kernel::profile::ProfileBuilder::from_string(
          "speed" + std::to_string(i), profile, -1));
    }
    host->seal();
    hosts.push_back(host);
  }
}

void Platform::add_routes(s4u::NetZone& zone, double unit) {
  std::vector<s4u::Link*> links;
  links.reserve(job.link_bandwidth.size());
  for (size_t i = 0; i < job.link_bandwidth.size(); ++i) {
    // Latency passes in a timer: CM02 would share links by round-trip time.
    s4u::Link* link = zone.create_link("link" + std::to_string(i), job.link_bandwidth[i] * unit);
    link->set_latency(0)->seal();
    links.push_back(link);
  }
  for (const JobRoute& route : job.routes) {
    std::vector<s4u::LinkInRoute> way;
    for (const std::uint32_t link : job.route_links.subspan(route.first_link, route.links)) {
      way.emplace_back(links[link]);
    }
    zone.add_route(hosts[route.from]->get_netpoint(), hosts[route.to]->get_netpoint(), nullptr,
                   nullptr, way, false);
  }
}

}  // namespace pipesim::simgrid_module
